"""What the role `certificates` makes, keeps and makes anew; on this machine, as root, in a folder of the test's own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., int]

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("openssl") is None, reason="needs root and openssl")


@pytest.fixture
def run(play: Callable[..., Any], tmp_path: Path) -> Run:
    """What brings certificates into tmp_path/host, given variables of the role: how many tasks have changed something."""
    playbook = tmp_path / "certificates.yml"
    playbook.write_text(
        json.dumps([{"hosts": "all", "connection": "local", "gather_facts": False, "roles": ["certificates"]}])
    )
    folders = {"certificates_authority": str(tmp_path / "authority"), "certificates_folder": str(tmp_path / "host")}
    told = {
        "site_name": "test",
        "certificates_key": "rsa:2048",
        "ansible_python_interpreter": sys.executable,
        **folders,
    }

    def bring(**variables: object) -> int:
        return int(play(str(playbook), "host-1,", "-e", json.dumps(told | variables)).changed["host-1"])

    return bring


def openssl(*words: object) -> str:
    return subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_certificate_follows_the_address(run: Run, tmp_path: Path) -> None:
    """A second run changes nothing; another address has another certificate."""
    assert run(certificates_address="10.0.0.1") > 0
    assert run(certificates_address="10.0.0.1") == 0
    assert run(certificates_address="10.0.0.2") > 0
    assert "IP Address:10.0.0.2" in openssl(
        "x509", "-noout", "-ext", "subjectAltName", "-in", tmp_path / "host" / "host.crt"
    )


def test_what_ends_soon_is_made_anew(run: Run, tmp_path: Path) -> None:
    """Both certificates are others, and whoever has the former one of the authority trusts the host all the same."""
    run()
    before = tmp_path / "before"
    shutil.copytree(tmp_path / "host", before)
    assert run(certificates_renewed_days=900) > 0
    for name in ("ca.crt", "host.crt"):
        assert (tmp_path / "host" / name).read_text() != (before / name).read_text()
    openssl("verify", "-CAfile", before / "ca.crt", tmp_path / "host" / "host.crt")
