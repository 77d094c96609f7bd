"""Orphans: child processes left by a harness that died, found by their records and ended.

Standard library only, because the reaper imports it (`python -I -S`).

Every child has a record, one small JSON file in the registry folder, from just before its start until it is stopped. A
process belongs to a record if it is in the recorded session and carries the record's random marker in its environment.
"""

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.system.procfs import boot_id, environment_of, members_of, processes, stat_of

MARKER_VARIABLE = "STREAM_BENCH_CHILD"
"""The environment variable that carries the marker to a child and all its descendants."""
_KILL_TIMEOUT_S = 5.0
_POLL_INTERVAL_S = 0.02


class Orphan(NamedTuple):
    """The record of one child."""

    marker: str
    supervisor: str
    """the random name of the Supervisor that started it"""
    name: str
    log: str
    boot: str
    owner: int
    """pid of the harness"""
    owner_created: int
    session: int = 0
    """pid of the child, which leads its session; 0 while it is being started"""
    created: int = 0
    """creation time of the child, as procfs.Stat has it"""

    def running(self) -> list[int]:
        """Return the pids of the child's processes that still run; never those of a stranger with a recycled pid."""
        if self.boot != boot_id():
            return []
        candidates = members_of(self.session) if self.session else processes()
        return [stat.pid for stat in candidates if environment_of(stat.pid).get(MARKER_VARIABLE) == self.marker]

    def owned(self) -> bool:
        """Return True if the harness that started the child still runs."""
        owner = stat_of(self.owner) if self.boot == boot_id() else None
        return owner is not None and owner.running and owner.created == self.owner_created

    def path(self, registry: Path) -> Path:
        """Return the path of the record's file in a registry."""
        return registry / f"{self.supervisor}.{self.marker}.json"

    def write(self, registry: Path) -> None:
        """Write the record atomically: a reader gets the old record or the new one."""
        registry.mkdir(parents=True, exist_ok=True)
        fresh = self.path(registry).with_suffix(".new")
        fresh.write_text(json.dumps(self._asdict()), encoding="utf-8")
        fresh.replace(self.path(registry))

    def remove(self, registry: Path) -> None:
        """Remove the record's file, if it is there."""
        self.path(registry).unlink(missing_ok=True)


def records(registry: Path, supervisor: str = "*") -> list[Orphan]:
    """Return the records of a registry, or of one Supervisor in it; skip files that are not records."""
    result = []
    for path in sorted(registry.glob(f"{supervisor}.*.json")):
        try:
            result.append(Orphan(**json.loads(path.read_text(encoding="utf-8"))))
        except (FileNotFoundError, ValueError, TypeError):  # removed meanwhile, or written by another version
            continue
    return result


def orphans(registry: Path) -> list[Orphan]:
    """Return the records whose harness is gone, including those of children that have ended."""
    return [record for record in records(registry) if not record.owned()]


def reap_orphans(registry: Path) -> list[str]:
    """End the children of dead harnesses and remove their records.

    Returns:
        One line for each child that still ran.
    """
    left = [(record, record.running()) for record in orphans(registry)]
    reap([record for record, _ in left], registry)
    return [f"{record.name}: ended {_numbers(pids)}" for record, pids in left if pids]


def reap(children: Sequence[Orphan], registry: Path, timeout_s: float = 3.0) -> None:
    """Terminate the processes of these records, kill them after `timeout_s`, and remove the records.

    The record of a process that survives SIGKILL stays.
    """
    for number, seconds in ((signal.SIGTERM, timeout_s), (signal.SIGKILL, _KILL_TIMEOUT_S)):
        deadline, signalled = time.monotonic() + seconds, set[int]()
        while (pids := [pid for record in children for pid in record.running()]) and time.monotonic() < deadline:
            for pid in set(pids) - signalled:  # once each: a second signal would interrupt its own clean-up
                _signal(pid, number)
            signalled.update(pids)
            time.sleep(_POLL_INTERVAL_S)
    for record in children:
        if not record.running():
            record.remove(registry)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _numbers(pids: Sequence[int]) -> str:
    return f"process{'es' if len(pids) > 1 else ''} {', '.join(map(str, pids))}"
