"""Loading of a native agent into a running JVM of this machine, by the attach mechanism of HotSpot."""

import os
import signal
import socket
import time
from pathlib import Path

from bench.errors import ServiceError

ATTACH_TIMEOUT_S = 10.0
"""For a JVM to listen, and then to answer."""
_POLL_INTERVAL_S = 0.02
_VERSION = b"1"
"""Of the protocol: version, command and three arguments, each with a zero byte behind it; the answer begins with 0."""


def load_agent(pid: int, library: Path, options: str, *, timeout_s: float = ATTACH_TIMEOUT_S) -> None:
    """Load an agent into a JVM and give it its options; the JVM must be of this user.

    Raises:
        ServiceError: the JVM does not answer in time, or refuses the agent.
    """
    try:
        answer = _ask(pid, (b"load", os.fsencode(library), b"true", options.encode()), timeout_s)
    except OSError as problem:
        raise ServiceError(f"the JVM {pid} takes no agent: {problem.strerror or 'no answer in time'}") from problem
    if [line[-1:] for line in answer.splitlines()[:2]] != ["0", "0"]:
        raise ServiceError(f"the JVM {pid} refused {library.name}: {' '.join(answer.split())[:200]}")


def _ask(pid: int, words: tuple[bytes, ...], timeout_s: float) -> str:
    """Return the JVM's answer to a command."""
    address = Path(f"/proc/{pid}/root/tmp/.java_pid{pid}")
    if not address.exists():
        _make_it_listen(pid, address, timeout_s)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(address))
        connection.sendall(b"".join(word + b"\0" for word in (_VERSION, *words)))
        parts = []
        while part := connection.recv(4096):
            parts.append(part)
    return b"".join(parts).decode(errors="replace")


def _make_it_listen(pid: int, address: Path, timeout_s: float) -> None:
    """Return once the JVM listens: it begins to when it finds a file of this name after SIGQUIT."""
    request = Path(f"/proc/{pid}/cwd/.attach_pid{pid}")
    request.touch()
    try:
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + timeout_s
        while not address.exists():
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(_POLL_INTERVAL_S)
    finally:
        request.unlink(missing_ok=True)
