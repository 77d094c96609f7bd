"""The live status of a run: status.json in its folder, replaced twice a second, for others to read while it runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.model.cell import Cell
from bench.model.measurement import PlannedTrial
from bench.runner.progress import CellStarted, Note, ProgressEvent, RateWindow, TrialProgress, TrialStarted
from bench.storage.atomic_file import replace_file

FILE = "status.json"
WRITE_INTERVAL_S = 0.5
RATE_SPAN_S = 1.5


class LiveStatus(Struct, frozen=True):
    """The cell and the trial under way; rates are messages/s over the last moments, None before there are any."""

    format: int = 2
    cell: Cell | None = None
    number: int = 0
    total: int = 0
    visit: int = 0
    """of the cell, from 1"""
    left_s: float | None = None
    """seconds that are left of the scenario's total; None without a total"""
    total_s: float | None = None
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
def live_status(folder: Path) -> Iterator["StatusWriter"]:
    """Yield a listener that keeps a run's status.json; the file is gone afterwards."""
    try:
        yield StatusWriter(folder / FILE)
    finally:
        (folder / FILE).unlink(missing_ok=True)


def read_status(folder: Path) -> LiveStatus | None:
    """Return what a run is doing; None when it does not say, as when it is over."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=LiveStatus)
    except (OSError, msgspec.MsgspecError):
        return None


class StatusWriter:
    """A listener that writes the events of a run; a full disk does not stop the run here."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._status, self._visit, self._written = LiveStatus(), LiveStatus(), 0.0
        self._rates = RateWindow(RATE_SPAN_S)
        self._end: float | None = None

    def __call__(self, event: ProgressEvent) -> None:
        """Take in an event."""
        match event:
            case Note():
                self._write(replace(self._status, note=event.text))
            case CellStarted():
                self._end = time.monotonic() + event.left_s if event.left_s is not None else None
                self._visit = LiveStatus(
                    cell=event.cell, number=event.number, total=event.total, visit=event.visit, total_s=event.total_s
                )
                self._write(replace(self._visit, note="deploying"))
            case TrialStarted():
                self._rates.clear()
                self._write(replace(self._visit, trial=event.planned))
            case TrialProgress():
                self._rates.add(event)
                if time.monotonic() >= self._written + WRITE_INTERVAL_S:
                    self._write(self._with_counters(event))
            case _:
                pass

    def _with_counters(self, progress: TrialProgress) -> LiveStatus:
        return replace(
            self._status,
            phase=progress.phase,
            elapsed=progress.elapsed,
            offered=progress.offered,
            sent=progress.sent,
            processed=progress.processed,
            offered_hz=self._rates.rate("offered"),
            processed_hz=self._rates.rate("processed"),
        )

    def _write(self, status: LiveStatus) -> None:
        self._status, self._written = status, time.monotonic()
        if self._end is not None:
            status = replace(status, left_s=max(0.0, self._end - self._written))
        with suppress(OSError):
            replace_file(self._path, msgspec.json.encode(status))
