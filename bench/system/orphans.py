"""What a harness that died left running, and its end; standard library only, because the guard imports it.

Every child has a record, one small JSON file in the registry's folder, from just before its start until it is stopped. A
process belongs to a record when it is in the recorded session and carries the record's random marker in its environment.
"""

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.system.procfs import boot_id, environment_of, members_of, processes, stat_of

MARK = "STREAM_BENCH_CHILD"
"""The environment variable that carries the marker to a child and all its descendants."""


class Orphan(NamedTuple):
    """The record of one child."""

    marker: str
    supervisor: str
    """a random name of the Supervisor that started it"""
    name: str
    log: str
    boot: str
    owner: int
    """pid of the harness"""
    owner_created: int
    session: int = 0
    """pid of the child, which leads its session; 0 while it is being started"""
    created: int = 0
    """when the child was created, as procfs.Stat says it"""

    def running(self) -> list[int]:
        """The pids of the child's processes that still run; none of anybody else's that got the same number."""
        if self.boot != boot_id():
            return []
        found = members_of(self.session) if self.session else processes()
        return [stat.pid for stat in found if environment_of(stat.pid).get(MARK) == self.marker]

    def owned(self) -> bool:
        """Whether the harness that started it still runs."""
        owner = stat_of(self.owner) if self.boot == boot_id() else None
        return owner is not None and owner.running and owner.created == self.owner_created

    def path(self, registry: Path) -> Path:
        return registry / f"{self.supervisor}.{self.marker}.json"

    def write(self, registry: Path) -> None:
        """Record it, in one step: a reader sees the old record or the new one."""
        registry.mkdir(parents=True, exist_ok=True)
        fresh = self.path(registry).with_suffix(".new")
        fresh.write_text(json.dumps(self._asdict()), encoding="utf-8")
        fresh.replace(self.path(registry))

    def remove(self, registry: Path) -> None:
        self.path(registry).unlink(missing_ok=True)


def records(registry: Path, supervisor: str = "*") -> list[Orphan]:
    """The records of a registry, or of one Supervisor in it; what is not a record of ours is passed over."""
    found = []
    for path in sorted(registry.glob(f"{supervisor}.*.json")):
        try:
            found.append(Orphan(**json.loads(path.read_text(encoding="utf-8"))))
        except (FileNotFoundError, ValueError, TypeError):  # removed meanwhile; or not written by this version
            continue
    return found


def orphans(registry: Path) -> list[Orphan]:
    """The records whose harness is gone, whether or not something of the child still runs."""
    return [record for record in records(registry) if not record.owned()]


def end_orphans(registry: Path) -> list[str]:
    """End what dead harnesses left running and remove their records; one line for each child that still ran."""
    found = [(record, record.running()) for record in orphans(registry)]
    end([record for record, _ in found], registry)
    return [f"{record.name}: ended {_numbers(pids)}" for record, pids in found if pids]


def end(found: Sequence[Orphan], registry: Path, patience: float = 3.0) -> None:
    """Terminate, then kill, what runs of these records, and remove them; a record of what cannot be killed stays."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 5.0)):
        deadline, told = time.monotonic() + seconds, set[int]()
        while (pids := [pid for record in found for pid in record.running()]) and time.monotonic() < deadline:
            for pid in set(pids) - told:  # each is told once: a second signal would interrupt its own clearing up
                _signal(pid, number)
            told.update(pids)
            time.sleep(0.02)
    for record in found:
        if not record.running():
            record.remove(registry)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _numbers(pids: Sequence[int]) -> str:
    return f"process{'es' if len(pids) > 1 else ''} {', '.join(map(str, pids))}"
