"""The baseline: a socket pair with frames of count, size and messages, and the same verification.

It has no acknowledgements and no checksums.
"""

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct

from frameworks.harmonicio.engine.benchmark.payload import LatencyRecorder, PayloadCheck, make_messages
from frameworks.harmonicio.engine.connector.options import Options
from frameworks.harmonicio.engine.pe import Batch

HEAD = Struct("<II")
_TIMEOUT_S = 60.0


def measure_baseline_rate(size: int, seconds: float) -> tuple[float, bool]:
    """Return the messages/s that a child process received, and whether they were exactly those sent.

    Args:
        size: message size in bytes.
        seconds: duration.
    """
    with _run_receiver(str(size)) as (child, sock):
        sock.recv(1)
        began = time.monotonic()
        rounds = _send(sock, size, began + seconds)
        sock.shutdown(socket.SHUT_WR)
        out, _ = child.communicate(timeout=_TIMEOUT_S)
    result = json.loads(out)
    check = PayloadCheck(size)
    check.count, check.total, check.corrupted = result["count"], result["total"], result["corrupted"]
    return result["count"] / (result["ended"] - began), check.is_exact(rounds)


def _send(sock: socket.socket, size: int, until: float) -> int:
    """Send whole sets of messages until a monotonic time; return how many sets."""
    messages, rounds = make_messages(size), 0
    batch = min(Options(c_name="-").batch_messages, max(1, Options(c_name="-").batch_bytes // size))
    while time.monotonic() < until:
        for first in range(0, len(messages), batch):
            part = messages[first : first + batch]
            payload = part[0] if len(part) == 1 else b"".join(part)
            head = HEAD.pack(len(part), len(payload))
            sent = sock.sendmsg([head, payload])
            if sent < len(head) + len(payload):
                sock.sendall(memoryview(payload)[sent - len(head) :])
        rounds += 1
    return rounds


@contextlib.contextmanager
def baseline_singles(record: Path) -> Iterator[Callable[[bytes], object]]:
    """Yield a `send` to a child process that records latencies; leaving waits until it has received everything."""
    with _run_receiver(str(record)) as (child, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.recv(1)
        yield lambda message: sock.sendall(HEAD.pack(1, len(message)) + message)
        sock.shutdown(socket.SHUT_WR)
        child.wait(_TIMEOUT_S)


@contextlib.contextmanager
def _run_receiver(argument: str) -> Iterator[tuple["subprocess.Popen[bytes]", socket.socket]]:
    """Start this module as a child process; yield it, and the connection that it opens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        command = [sys.executable, "-m", "frameworks.harmonicio.engine.benchmark.socket_baseline", port, argument]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            listener.settimeout(_TIMEOUT_S)
            sock, _ = listener.accept()
            with sock:
                yield child, sock
        finally:
            child.kill()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()


def record_singles(port: int, record: Path) -> None:
    """Receive single messages and record their latency, in the child process."""
    recorder, head, body = LatencyRecorder({"record": str(record)}), bytearray(HEAD.size), memoryview(bytearray(2**16))
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(b"!")
        while _fill(sock, memoryview(head)):
            count, length = HEAD.unpack(head)
            _fill(sock, body[:length])
            recorder(Batch(body[:length], None, count))


def receive(port: int, size: int) -> None:
    """Receive and verify until the end, in the child process; print the result as JSON."""
    check, head = PayloadCheck(size), bytearray(HEAD.size)
    with socket.create_connection(("127.0.0.1", port)) as sock:
        buffer = bytearray(max(size, Options(c_name="-").batch_bytes))
        whole = memoryview(buffer)
        check.verify(memoryview(b"".join(make_messages(size)[:1])), 1)  # warm up
        check.count = check.total = 0
        sock.sendall(b"!")
        while _fill(sock, memoryview(head)):
            count, length = HEAD.unpack(head)
            _fill(sock, whole[:length])
            check.verify(whole[:length], count)
    result = {"count": check.count, "total": check.total, "corrupted": check.corrupted, "ended": time.monotonic()}
    sys.stdout.write(json.dumps(result))


def _fill(sock: socket.socket, view: memoryview) -> bool:
    """Fill the view from the socket; return False at the end of the connection."""
    filled = 0
    while filled < len(view):
        received = sock.recv_into(view[filled:])
        if not received:
            return False
        filled += received
    return True


if __name__ == "__main__":
    if sys.argv[2].isdigit():
        receive(int(sys.argv[1]), int(sys.argv[2]))
    else:
        record_singles(int(sys.argv[1]), Path(sys.argv[2]))
