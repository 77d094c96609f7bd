"""The processes that a fault can hit: found by the records of the harness's children, and known by pid and start time.

Nothing else is ever signalled: a process must carry the marker of this run's harness in its environment.
"""

import os
import signal
from pathlib import Path
from typing import NamedTuple

import psutil

from bench.system.orphans import Orphan, records
from bench.system.procfs import stat_of

NUMBERS = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM, "stop": signal.SIGSTOP}
_CHILDREN = {
    "load": ("locust",),
    "source": ("kafka", "pulsar"),
    "framework": ("python-", "spark", "harmonicio-", "bytewax", "flink"),
    "PE": ("harmonicio-worker",),
}
"""Beginnings of the names of the children of each role; PEs are started by a worker, within its session."""
_PROGRAMS = {
    b"pyspark.daemon": "Python worker", b"pyflink": "Python worker", b"TaskManagerRunner": "TaskManager",
    b"ClusterEntrypoint": "JobManager", b"SparkSubmit": "driver (JVM)", b"spark.job": "driver (Python)",
}  # fmt: skip
"""By a part of a word of the command line: programs of a child that has several."""
_PE_MODULE = b"frameworks.harmonicio.engine.pe.main"


class Target(NamedTuple):
    """A process, which its pid and its start time (ticks after boot) identify together."""

    name: str
    pid: int
    created: int

    def is_running(self) -> bool:
        """Return whether the process is there, and no other one with its pid."""
        stat = stat_of(self.pid)
        return stat is not None and stat.running and stat.created == self.created

    def send(self, number: int) -> bool:
        """Send a signal; return whether the process was still there."""
        if not self.is_running():
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def listening_ports(self) -> list[int]:
        """Return the TCP ports at which it listens; none if it has ended."""
        try:
            found = psutil.Process(self.pid).net_connections("tcp")
        except psutil.Error:
            return []
        return sorted({one.laddr.port for one in found if one.status == psutil.CONN_LISTEN})


def target_of(name: str, pid: int) -> Target | None:
    """Return the running process with this pid; None if it has ended."""
    stat = stat_of(pid)
    return Target(name, pid, stat.created) if stat is not None and stat.running else None


def find_target(children: Path, victim: str, chance: float) -> Target | None:
    """Return a process of a role; None while there is none.

    Args:
        children: The harness's records of its child processes.
        victim: The role.
        chance: From 0 to 1; chooses one of several.
    """
    of_role = [record for record in records(children) if record.name.startswith(_CHILDREN[victim])]
    found = [(label_of(record.name, pid), pid) for record in of_role if record.session for pid in _pids(record, victim)]
    if not found:
        return None
    return target_of(*sorted(found)[int(chance * len(found)) % len(found)])


def _pids(record: Orphan, victim: str) -> list[int]:
    members = record.running()
    if victim == "PE":
        return [pid for pid in members if _PE_MODULE in words_of(pid)]
    if record.name == "harmonicio-worker":
        return [pid for pid in members if pid == record.session]
    return members


def label_of(name: str, pid: int) -> str:
    """Return the name of a child without its number, and which of its programs a process is."""
    words = words_of(pid)
    kind = name.rstrip("0123456789").rstrip("-")
    program = next((label for part, label in _PROGRAMS.items() if any(part in word for word in words)), "")
    return f"{kind} {program}".strip()


def words_of(pid: int) -> list[bytes]:
    """Return the command line of a process; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []
