"""An agent is loaded into a JVM by HotSpot's own protocol, and a refusal is told."""

import sys
import time
from pathlib import Path

import pytest

from bench.errors import ServiceError
from bench.system.supervisor import Supervisor
from bench.telemetry.jvm_attach import load_agent

AGENT = Path("/lib/agent.so")
DEADLINE_S = 60.0
STAND_IN = """
import os, signal, socket, sys
from pathlib import Path
answer, said = sys.argv[1], Path(sys.argv[2])
address = f"/tmp/.java_pid{os.getpid()}"
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGQUIT])
said.with_suffix(".ready").touch()
signal.sigwait([signal.SIGQUIT])
assert Path(f".attach_pid{os.getpid()}").exists()
server = socket.socket(socket.AF_UNIX)
server.bind(address + ".tmp")
server.listen()
os.rename(address + ".tmp", address)
try:
    while True:
        peer, _ = server.accept()
        said.write_bytes(peer.recv(4096))
        peer.sendall(answer.encode())
        peer.close()
finally:
    os.unlink(address)
"""
"""It listens as HotSpot does: once it was sent SIGQUIT and finds the file. The socket gets its name when it listens."""


@pytest.fixture
def supervisor(tmp_path):
    supervisor = Supervisor(tmp_path / "running", tmp_path / "logs")
    yield supervisor
    supervisor.close()


@pytest.fixture
def start(supervisor, tmp_path):
    """Start a stand-in for a JVM that gives an answer; return its pid, and the file with what it was asked."""

    def make(answer):
        said = tmp_path / "said"
        command = [sys.executable, "-c", STAND_IN, answer, str(said)]
        child = supervisor.start(command, name="jvm", role="framework", cwd=tmp_path)
        deadline = time.monotonic() + DEADLINE_S
        while not said.with_suffix(".ready").exists():
            assert time.monotonic() < deadline, child.log.read_text()
            time.sleep(0.01)
        return child.pid, said

    yield make
    for address in tmp_path.glob(".attach_pid*"):
        raise AssertionError(f"{address} was left behind")


def test_an_agent_is_loaded_with_its_options(start):
    """Also a second time, when the JVM listens already."""
    pid, said = start("0\nreturn code: 0\n")
    for options in ("start", "stop"):
        load_agent(pid, AGENT, options)
        assert said.read_bytes() == b"1\0load\0/lib/agent.so\0true\0" + options.encode() + b"\0"
    Path(f"/tmp/.java_pid{pid}").unlink()


@pytest.mark.parametrize("answer", ["0\nreturn code: 1\n", "100\nno such file\n", ""], ids=["agent", "jvm", "nothing"])
def test_a_refusal_is_told(start, answer):
    """With what the JVM said."""
    pid, _ = start(answer)
    with pytest.raises(ServiceError, match="refused agent"):
        load_agent(pid, AGENT, "start")
    Path(f"/tmp/.java_pid{pid}").unlink()


def test_a_jvm_that_does_not_listen_is_told(supervisor, tmp_path):
    """After a deadline, and what asked it to listen is removed."""
    code = "import signal, time; signal.signal(signal.SIGQUIT, signal.SIG_IGN); print('r', flush=True); time.sleep(600)"
    child = supervisor.start([sys.executable, "-c", code], name="jvm", role="framework", cwd=tmp_path)
    deadline = time.monotonic() + DEADLINE_S
    while "r" not in child.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(ServiceError, match="takes no agent: no answer in time"):
        load_agent(child.pid, AGENT, "start", timeout_s=0.2)
    assert list(tmp_path.glob(".attach_pid*")) == []
