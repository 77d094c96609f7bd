"""A network of the campaign's own (root): a namespace with nothing but loopback, in which packets are dropped.

Rules of the machine's own network are never touched.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence

_ENTER = 'ip link set lo up && exec "$@"'
_SLOW = ("rate", "8mbit", "burst", "256kbit", "latency", "200ms")
"""Of all traffic on loopback; a queue of 200 ms delays packets, what is more is dropped."""


def is_own() -> bool:
    """Return whether this process is in a namespace with nothing but loopback."""
    return os.geteuid() == 0 and [name for _, name in socket.if_nameindex()] == ["lo"]


def missing_reason() -> str | None:
    """Return why there can be no network of the campaign's own; None if there can."""
    if os.geteuid() != 0:
        return "only root may make a network namespace"
    missing = [name for name in ("unshare", "ip", "iptables", "tc") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not found; install iproute2 and iptables"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "iptables", "-L"], check=False, capture_output=True, text=True
    )
    return None if tried.returncode == 0 else f"no network namespace with iptables: {tried.stderr.strip()}"


def enter(words: Sequence[str]) -> None:
    """Become the same Python program in namespaces of its own, where that is possible; else return.

    Its mounts are its own, too: they end with it, however it ends.
    """
    if not is_own() and missing_reason() is None:
        os.execvp("unshare", ["unshare", "--net", "--mount", "sh", "-c", _ENTER, "sh", sys.executable, *words])


@contextlib.contextmanager
def broken(kind: str, port: int) -> Iterator[None]:
    """Cut, halve or slow down the way to a port for as long as the block lasts.

    Args:
        kind: "cut": no packet passes; "halved": none from the server passes; "slow": all of loopback is slow.
        port: Of the server.
    """
    assert is_own(), "this is the network of the machine"
    done, undone = _commands(kind, port)
    for command in done:
        subprocess.run(command, check=True, capture_output=True)
    try:
        yield
    finally:
        for command in undone:
            subprocess.run(command, check=True, capture_output=True)


def _commands(kind: str, port: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return the commands that break the network, and those that mend it."""
    if kind == "slow":
        queue = ["dev", "lo", "root"]
        return [["tc", "qdisc", "add", *queue, "tbf", *_SLOW]], [["tc", "qdisc", "del", *queue]]
    sides = ("--sport", "--dport") if kind == "cut" else ("--sport",)
    rules = [["INPUT", "-p", "tcp", side, str(port), "-j", "DROP"] for side in sides]
    return [["iptables", "-A", *rule] for rule in rules], [["iptables", "-D", *rule] for rule in rules]
