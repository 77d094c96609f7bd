"""Circumstances that need no run: a name that nobody resolves, and ports that are taken."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bench.storage.run_folder import read_results
from tests.bench_command import Harness
from tests.campaign import invariants
from tests.campaign.subjects import SUBJECTS

ROOT = Path(__file__).parents[2]
KAFKA = next(subject for subject in SUBJECTS if subject.name == "kafka")
SITE = "name: lab\nshared_machine: true\nkafka: {bootstrap: 'broker.invalid:9092'}\n"


def test_a_host_without_an_address_is_named(tmp_path):
    """The cell that needs it fails with its name; nothing is printed that only a developer reads."""
    (tmp_path / "scenario.yaml").write_text(KAFKA.scenario)
    (tmp_path / "site.yaml").write_text(SITE)
    words = ["--site", str(tmp_path / "site.yaml"), "--out", str(tmp_path / "results")]
    code, output = Harness(tmp_path, ROOT).done("run", str(tmp_path / "scenario.yaml"), *words)
    assert code == 4
    assert invariants.TRACEBACK not in output
    results = read_results(next((tmp_path / "results").iterdir()))
    failed = next(result for result in results if result.cell.system == "python/kafka")
    assert (failed.status, "broker.invalid" in (failed.reason or "")) == ("failed", True), failed.reason


@pytest.mark.parametrize("role", ["master", "worker"])
def test_a_taken_port_is_named(role, tmp_path):
    """A role of HarmonicIO ends with a line about it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        more = ["--state", str(tmp_path)] if role == "master" else ["--master", "127.0.0.1:1"]
        command = [sys.executable, "-m", "frameworks.harmonicio.engine.cli", role, "--port", port, *more]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode not in (0, 1)
    assert invariants.TRACEBACK not in done.stderr
    assert port in done.stderr
