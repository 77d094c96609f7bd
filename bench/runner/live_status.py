"""What a run is doing now, in a file of its folder that others may read while it runs: now.json, replaced twice a second."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.verdict import Verdict
from bench.model.cell import Cell
from bench.model.measurement import Measurement, PlannedTrial, Result
from bench.runner.run import ProgressListener
from bench.runner.trial import TrialProgress

FILE = "now.json"
EVERY = 0.5
"""Seconds from one writing to the next."""
SPAN = 1.5
"""Seconds over which rates are taken."""


class Now(Struct, frozen=True):
    """The cell and the trial under way; rates are messages/s over the last moments, None before there are any."""

    format: int = 1
    cell: Cell | None = None
    number: int = 0
    of: int = 0
    note: str = ""
    trial: PlannedTrial | None = None
    phase: str = ""
    elapsed: float = 0.0
    """seconds since the trial's first message was due"""
    offered: int = 0
    sent: int = 0
    processed: int = 0
    offered_hz: float | None = None
    processed_hz: float | None = None


@contextmanager
def live_status(folder: Path, watcher: ProgressListener) -> Iterator[ProgressListener]:
    """A watcher that keeps a run's now.json and tells another one everything; the file is gone afterwards."""
    try:
        yield LiveStatus(folder / FILE, watcher)
    finally:
        (folder / FILE).unlink(missing_ok=True)


def read_now(folder: Path) -> Now | None:
    """What a run is doing; None when it does not say, as when it is over."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Now)
    except (OSError, msgspec.MsgspecError):
        return None


class LiveStatus:
    """Writes what it is told; a full disk does not stop a run here."""

    def __init__(self, path: Path, watcher: ProgressListener) -> None:
        self._path, self._watcher = path, watcher
        self._now, self._written = Now(), 0.0
        self._recent: list[TrialProgress] = []

    def note(self, text: str) -> None:
        self._write(replace(self._now, note=text))
        self._watcher.note(text)

    def cell_begins(self, cell: Cell, number: int, of: int) -> None:
        self._write(Now(cell=cell, number=number, of=of, note="standing up"))
        self._watcher.cell_begins(cell, number, of)

    def trial_begins(self, planned: PlannedTrial) -> None:
        now = self._now
        self._recent = []
        self._write(Now(cell=now.cell, number=now.number, of=now.of, trial=planned))
        self._watcher.trial_begins(planned)

    def trial_progress(self, trial_progress: TrialProgress) -> None:
        self._recent = [*(one for one in self._recent if one.elapsed >= trial_progress.elapsed - SPAN), trial_progress]
        if time.monotonic() >= self._written + EVERY:
            self._write(self._glimpsed(trial_progress))
        self._watcher.trial_progress(trial_progress)

    def trial_ends(self, seen: Measurement, verdict: Verdict) -> None:
        self._watcher.trial_ends(seen, verdict)

    def cell_ends(self, result: Result) -> None:
        self._watcher.cell_ends(result)

    def _glimpsed(self, trial_progress: TrialProgress) -> Now:
        first = self._recent[0]
        span = trial_progress.elapsed - first.elapsed
        rates = [
            (getattr(trial_progress, name) - getattr(first, name)) / span if span > 0 else None
            for name in ("offered", "processed")
        ]
        return replace(
            self._now, phase=trial_progress.phase, elapsed=trial_progress.elapsed, offered=trial_progress.offered, sent=trial_progress.sent,
            processed=trial_progress.processed, offered_hz=rates[0], processed_hz=rates[1],
        )  # fmt: skip

    def _write(self, now: Now) -> None:
        self._now, self._written = now, time.monotonic()
        part = self._path.with_name(f".{self._path.name}.part")
        with suppress(OSError):
            part.write_bytes(msgspec.json.encode(now))
            part.replace(self._path)
