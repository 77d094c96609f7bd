"""The network of a campaign is broken within a namespace of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaign import network

ROOT = Path(__file__).parents[2]
SCRIPT = """
import socket
from tests.campaign import network
network.enter(["-c", open("/proc/self/cmdline").read().split(chr(0))[2]])
assert network.is_own()
server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
with network.broken("{kind}", port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.3).close()
        print("connected")
    except TimeoutError:
        print("refused")
socket.create_connection(("127.0.0.1", port), timeout=30).close()
print("mended")
"""


@pytest.mark.parametrize(("kind", "said"), [("cut", "refused"), ("halved", "refused"), ("slow", "connected")])
def test_a_broken_network_is_mended_afterwards(kind, said):
    """Nobody connects while it is cut, or while no answer comes."""
    reason = network.missing_reason()
    if reason is not None:
        pytest.skip(reason)
    command = [sys.executable, "-c", SCRIPT.format(kind=kind)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == [said, "mended"], done.stderr
