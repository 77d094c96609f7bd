"""Tests of the role `certificates`, run on this machine as root in a temporary folder."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RunRole = Callable[..., int]

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("openssl") is None, reason="needs root and openssl")


@pytest.fixture
def run_role(play: Callable[..., Any], tmp_path: Path) -> RunRole:
    """Return a function that runs the role with variables and returns the number of tasks that changed something."""
    playbook = tmp_path / "certificates.yml"
    playbook.write_text(
        json.dumps([{"hosts": "all", "connection": "local", "gather_facts": False, "roles": ["certificates"]}])
    )
    folders = {"certificates_authority": str(tmp_path / "authority"), "certificates_folder": str(tmp_path / "host")}
    defaults = {
        "site_name": "test",
        "certificates_key_bits": 2048,
        "ansible_python_interpreter": sys.executable,
        **folders,
    }

    def run(*options: str, **variables: object) -> int:
        played = play(str(playbook), "host-1,", *options, "-e", json.dumps(defaults | variables))
        return int(played.changed["host-1"])

    return run


def openssl(*arguments: object) -> str:
    return subprocess.run(
        ["openssl", *map(str, arguments)], capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_a_new_address_gets_a_new_certificate(run_role: RunRole, tmp_path: Path) -> None:
    """A second run changes nothing, and a run with another address creates a certificate for it."""
    assert run_role(certificates_address="10.0.0.1") > 0
    assert (tmp_path / "host" / "host.key").read_text().startswith("-----BEGIN PRIVATE KEY-----")  # as Kafka reads it
    assert run_role(certificates_address="10.0.0.1") == 0
    assert run_role(certificates_address="fd00::2") > 0
    assert run_role(certificates_address="fd00::2") == 0
    names = openssl("x509", "-noout", "-ext", "subjectAltName", "-in", tmp_path / "host" / "host.crt")
    assert "IP Address:FD00:0:0:0:0:0:0:2, DNS:host-1" in names


def test_certificates_that_expire_soon_are_renewed(run_role: RunRole, tmp_path: Path) -> None:
    """Both certificates are replaced, and a client with the old certificate of the authority still trusts the host."""
    run_role()
    before = tmp_path / "before"
    shutil.copytree(tmp_path / "host", before)
    assert run_role(certificates_renewed_days=900) > 0
    for name in ("ca.crt", "host.crt"):
        assert (tmp_path / "host" / name).read_text() != (before / name).read_text()
    openssl("verify", "-CAfile", before / "ca.crt", tmp_path / "host" / "host.crt")


def test_check_mode_writes_nothing(run_role: RunRole, tmp_path: Path) -> None:
    """It ends well on a new controller, and finds nothing to change after a run."""
    run_role("--check")
    assert not list(tmp_path.glob("*/*"))
    run_role()
    assert run_role("--check") == 0


def test_an_authority_of_an_earlier_version_stays(run_role: RunRole, tmp_path: Path) -> None:
    """Its certificate, made by openssl, is not replaced, and signs the hosts' certificates."""
    authority = tmp_path / "authority"
    authority.mkdir()
    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=stream-bench test", "-days", 825)
    openssl(*new, "-keyout", authority / "ca.key", "-out", authority / "ca.crt")
    before = (authority / "ca.crt").read_text()
    run_role()
    assert (tmp_path / "host" / "ca.crt").read_text() == before
    openssl("verify", "-CAfile", authority / "ca.crt", tmp_path / "host" / "host.crt")
