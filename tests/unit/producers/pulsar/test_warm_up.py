"""The warm-up of an embedded Pulsar is a process that says in one line why it failed."""

import subprocess
import sys

import pytest

from bench.services.ports import LOOPBACK, free_ports

pytest.importorskip("pulsar", reason="the pulsar extra is not installed")


def test_a_pulsar_that_does_not_answer_is_told_in_one_line() -> None:
    """Its exit code is 1, and the line names the address."""
    address = f"{LOOPBACK}:{free_ports(1)[0]}"
    command = [sys.executable, "-m", "producers.pulsar.warm_up", f"pulsar://{address}", f"http://{address}", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    (line,) = done.stdout.splitlines()
    assert (done.returncode, address in line, done.stderr) == (1, True, "")
