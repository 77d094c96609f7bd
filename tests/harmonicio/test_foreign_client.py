"""A client that has nothing of this project sends by the protocol that PROTOCOL.md describes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from processes import wait_until

PROGRAM = Path(__file__).parents[2] / "docs/programs/harmonicio_client.py"
LINES = [f"{number:08}" for number in range(3000)]

pytestmark = pytest.mark.real


@pytest.fixture
def client(running_cluster):
    """Starts the program with the lines; it is over when a test ends."""
    command = [sys.executable, "-I", str(PROGRAM), f"127.0.0.1:{running_cluster.data_port}", "s"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as program:

        def send(lines=LINES):
            program.stdin.write("".join(f"{line}\n" for line in lines).encode())
            program.stdin.close()
            return program

        yield send
        program.kill()


def said(program):
    """Return what the program printed, once it has ended."""
    program.wait(60)
    return program.stdout.read().decode().strip()


def wait_processed(cluster):
    """Wait until every line was processed; return how many were processed in all."""
    expected = np.frombuffer("".join(LINES).encode(), dtype="<u8")
    wait_until(lambda: len(np.unique(cluster.processed())) == len(LINES), "all messages")
    assert np.array_equal(np.unique(cluster.processed()), np.unique(expected))
    return len(cluster.processed())


def test_every_message_is_processed_once(running_cluster, client):
    """Two PEs share them."""
    running_cluster.submit(num=2)
    running_cluster.wait_pes(2)
    assert said(client()) == "all acknowledged, 0 failed"
    assert wait_processed(running_cluster) == len(LINES)
    assert running_cluster.operator.status()["totals"]["queued_total"] == 0


def test_messages_without_a_pe_wait_in_the_queue(running_cluster, client):
    """They are processed once a PE comes."""
    assert said(client()) == "all acknowledged, 0 failed"
    running_cluster.submit()
    assert wait_processed(running_cluster) == len(LINES)


def test_nothing_is_lost_with_a_pe(running_cluster, client):
    """Its unacknowledged messages are sent to the other one."""
    running_cluster.submit(num=2)
    running_cluster.wait_pes(2)
    program = client()
    wait_until(lambda: len(running_cluster.processed()), "the first message")
    os.kill(running_cluster.pe_pids()[0], signal.SIGKILL)
    assert said(program) == "all acknowledged, 0 failed"
    wait_processed(running_cluster)


def test_a_failed_message_is_told(running_cluster, client):
    """The acknowledgement says how many failed."""
    running_cluster.submit("Keep")
    running_cluster.wait_pes(1)
    assert said(client(["one", "bad", "two"])) == "all acknowledged, 1 failed"
