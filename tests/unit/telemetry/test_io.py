"""Network bytes, disk bytes and garbage collection are attributed to their role; with real processes."""

import os
import socket
import sys
import time
from pathlib import Path

import pytest

from bench.services.java import java
from bench.system.supervisor import Supervisor
from bench.telemetry.cpu import CpuProbe
from bench.telemetry.io import read_io_counters
from bench.telemetry.jvm_gc import counters, gc_seconds
from bench.telemetry.resources import ResourceMeter
from bench.telemetry.tcp_counters import read_tcp_bytes, socket_inodes

SENDS = """
import socket, sys, time
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while not peer.recv(1): time.sleep(0.01)
peer.sendall(b"x" * 3_000_000)
print("done", flush=True); time.sleep(600)
"""
WRITES = """
import os, sys, time
print("ready", flush=True)
sys.stdin.read()
with open(sys.argv[1], "wb") as file:
    file.write(b"x" * 5_000_000); file.flush(); os.fsync(file.fileno())
print("done", flush=True); time.sleep(600)
"""
COLLECTS = """
public class Collects {
    public static void main(String[] arguments) throws Exception {
        for (int round = 0; round < 20; round++) System.gc();
        System.out.println("done");
        Thread.sleep(600_000);
    }
}
"""


def waited(condition, seconds=30.0):
    """Return True if a condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_own_sockets_count_the_bytes_sent_and_received():
    """Both ends of a connection count, each its own direction."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as one:
        other, _ = listener.accept()
        with other:
            one.sendall(b"x" * 1000)
            assert len(other.recv(1000, socket.MSG_WAITALL)) == 1000
            tcp = read_tcp_bytes()
            assert tcp is not None
            inodes = [os.fstat(end.fileno()).st_ino for end in (one, other)]
            assert {inodes[0], inodes[1]} <= socket_inodes([os.getpid()])
            assert waited(lambda: (read_tcp_bytes() or {})[inodes[0]].sent in (1000, 1001))  # the SYN may count
            assert tcp[inodes[1]].received == 1000


def test_tcp_bytes_are_attributed_to_their_role(tmp_path: Path):
    """Bytes that a child sent to the harness are sent bytes of its role and received bytes of the harness."""
    with (
        Supervisor(tmp_path / "registry", tmp_path / "logs") as supervisor,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        port = str(listener.getsockname()[1])
        child = supervisor.start([sys.executable, "-c", SENDS, port], name="sender", role="load")
        peer, _ = listener.accept()
        with peer:
            before = read_io_counters(supervisor)
            peer.sendall(b"!")
            left = 3_000_000
            while left:
                left -= len(peer.recv(min(left, 2**16)))
            child.wait_ready(lambda: "done" in child.log.read_text(), 30)
            used = read_io_counters(supervisor).since(before)
    assert used["load"]["sent_bytes"] == pytest.approx(3_000_000, abs=10)
    assert used["load"]["received_bytes"] == 1
    assert used["harness"]["received_bytes"] >= 3_000_000
    assert used["load"]["link_sent_bytes"] == used["harness"]["link_received_bytes"] == 0  # over loopback


def test_disk_bytes_are_attributed_to_their_role(tmp_path: Path):
    """Bytes that a child wrote to a file on a disk count; in memory (tmpfs) nothing is written to a disk."""
    code = WRITES.replace("sys.stdin.read()", "pass")
    with Supervisor(tmp_path / "registry", tmp_path / "logs") as supervisor:
        before = read_io_counters(supervisor)
        child = supervisor.start([sys.executable, "-c", code, str(tmp_path / "file")], name="writer", role="source")
        child.wait_ready(lambda: "done" in child.log.read_text(), 30)
        used = read_io_counters(supervisor).since(before)
    in_memory = "tmpfs" in _file_system_of(tmp_path)
    assert used["source"]["written_bytes"] == (0 if in_memory else pytest.approx(5_000_000, rel=0.3))


def test_a_child_that_is_no_jvm_has_no_collections(tmp_path: Path):
    """A value that does not exist is missing, not 0."""
    with Supervisor(tmp_path / "registry", tmp_path / "logs") as supervisor:
        supervisor.start([sys.executable, "-c", "import time; time.sleep(600)"], name="child", role="framework")
        assert "gc_seconds" not in read_io_counters(supervisor).since(read_io_counters(supervisor))["framework"]
    assert gc_seconds(os.getpid()) is None
    assert counters(2**22 + 1) == {}


@pytest.mark.real
def test_collections_of_a_jvm_are_attributed_to_its_role(tmp_path: Path):
    """A JVM that collected its garbage twenty times has paused; no other role has collections."""
    source = tmp_path / "Collects.java"
    source.write_text(COLLECTS)
    with Supervisor(tmp_path / "registry", tmp_path / "logs") as supervisor:
        meter = ResourceMeter(CpuProbe(supervisor), supervisor)
        child = supervisor.start([java(), "-Xmx64m", str(source)], name="jvm", role="framework")
        child.wait_ready(lambda: "done" in child.log.read_text(), 60)
        usage = meter.usage(sees_other_work=True)
    assert 0 < usage.usage["framework"]["gc_seconds"] < usage.cpu["seconds"]
    assert "gc_seconds" not in usage.usage["harness"]


def _file_system_of(path: Path) -> str:
    """The kind of the file system that a path lies on."""
    lines = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return max((line[1], line[2]) for line in lines if path.is_relative_to(line[1]))[1]
