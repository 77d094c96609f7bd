"""A bare framed socket pair: count and size, then the messages; no acknowledgement, no checksum but the same verification."""

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct

from frameworks.harmonicio.engine.benchmark.check import Check, Clock, messages_of
from frameworks.harmonicio.engine.connector.options import Options
from frameworks.harmonicio.engine.pe import Batch

HEAD = Struct("<II")
_DEADLINE = 60.0


def bare_rate(size: int, seconds: float) -> tuple[float, bool]:
    """(messages/s that a child received and verified, whether they were exactly those sent)."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [
            sys.executable,
            "-m",
            "frameworks.harmonicio.engine.benchmark.bare",
            str(listener.getsockname()[1]),
            str(size),
        ]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            listener.settimeout(_DEADLINE)
            sock, _ = listener.accept()
            sock.recv(1)
            began = time.monotonic()
            with sock:
                rounds = _send(sock, size, began + seconds)
                sock.shutdown(socket.SHUT_WR)
                out, _ = child.communicate(timeout=_DEADLINE)
        finally:
            child.kill()
            child.wait()
    told = json.loads(out)
    check = Check(size)
    check.count, check.total, check.wrong = told["count"], told["total"], told["wrong"]
    return told["count"] / (told["ended"] - began), check.is_exact(rounds)


def _send(sock: socket.socket, size: int, until: float) -> int:
    """Send whole sets until the time is over; how many."""
    messages, rounds = messages_of(size), 0
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
def bare_singles(account: Path) -> Iterator[Callable[[bytes], object]]:
    """A `send` to a child that times single messages as Clock does; leaving waits until it has them all."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [
            sys.executable,
            "-m",
            "frameworks.harmonicio.engine.benchmark.bare",
            str(listener.getsockname()[1]),
            str(account),
        ]
        child = subprocess.Popen(command)
        try:
            listener.settimeout(_DEADLINE)
            sock, _ = listener.accept()
            with sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.recv(1)
                yield lambda message: sock.sendall(HEAD.pack(1, len(message)) + message)
                sock.shutdown(socket.SHUT_WR)
                child.wait(_DEADLINE)
        finally:
            child.kill()
            child.wait()


def time_singles(port: int, account: Path) -> None:
    """The child of it."""
    clock, head, body = Clock({"account": str(account)}), bytearray(HEAD.size), memoryview(bytearray(2**16))
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(b"!")
        while _fill(sock, memoryview(head)):
            count, length = HEAD.unpack(head)
            _fill(sock, body[:length])
            clock(Batch(body[:length], None, count))


def receive(port: int, size: int) -> None:
    """Receive and verify until the end; tell the account."""
    check, head = Check(size), bytearray(HEAD.size)
    with socket.create_connection(("127.0.0.1", port)) as sock:
        buffer = bytearray(max(size, Options(c_name="-").batch_bytes))
        whole = memoryview(buffer)
        check.look(memoryview(b"".join(messages_of(size)[:1])), 1)  # what is slow the first time is not measured
        check.count = check.total = 0
        sock.sendall(b"!")
        while _fill(sock, memoryview(head)):
            count, length = HEAD.unpack(head)
            _fill(sock, whole[:length])
            check.look(whole[:length], count)
    told = {"count": check.count, "total": check.total, "wrong": check.wrong, "ended": time.monotonic()}
    sys.stdout.write(json.dumps(told))


def _fill(sock: socket.socket, view: memoryview) -> bool:
    """Receive exactly that much; False at the end."""
    filled = 0
    while filled < len(view):
        got = sock.recv_into(view[filled:])
        if not got:
            return False
        filled += got
    return True


if __name__ == "__main__":
    if sys.argv[2].isdigit():
        receive(int(sys.argv[1]), int(sys.argv[2]))
    else:
        time_singles(int(sys.argv[1]), Path(sys.argv[2]))
