"""What the logs of a run say about one cell: the last lines that were written while its trials were made."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from reports.data.run_data import CellData

LINES, WIDEST = 12, 240
MAX_BYTES = 8 * 2**20
"""Of a log's end that is read."""
BEFORE, AFTER = timedelta(seconds=15), timedelta(seconds=45)
_STAMP = re.compile(r"^\W{0,2}((?:\d\d)?\d\d)[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)")


class Tail(Struct, frozen=True):
    """The end of one log."""

    file: str
    text: str


class Logs:
    """The logs of a run's folder, read once."""

    def __init__(self, folder: Path) -> None:
        files = [folder / "harness.log", *sorted((folder / "logs").glob("*.log"))]
        self._logs = {file.name: _stamped(file) for file in files if file.is_file()}

    def of(self, known: CellData) -> tuple[Tail, ...]:
        """The tails of what was written during a cell's trials; lines without a time belong to the line before them."""
        if not known.trials:
            return ()
        began, ended = (_time_of(known.trials[n].seen.started) for n in (0, -1))
        if began is None or ended is None:
            return ()
        last = ended + timedelta(seconds=known.trials[-1].seen.seconds) + AFTER
        found = []
        for name, lines in self._logs.items():
            within = [line for at, line in lines if at is not None and began - BEFORE <= at <= last]
            if within:
                found.append(Tail(name, "\n".join(within[-LINES:])))
        return tuple(found)


def _stamped(file: Path) -> list[tuple[datetime | None, str]]:
    """The lines of a log, each with its time (taken for UTC) or that of the line before it."""
    with file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - MAX_BYTES))
        text = log.read().decode("utf-8", "replace")
    at: datetime | None = None
    found = []
    for line in text.splitlines():
        at = _stamp_of(line) or at
        shown = line if len(line) <= WIDEST else f"{line[: WIDEST - 1]}…"
        found.append((at, "".join(char if char.isprintable() or char == "\t" else "\ufffd" for char in shown)))
    return found


def _stamp_of(line: str) -> datetime | None:
    match = _STAMP.match(line)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(word) for word in match.groups())
    try:
        return datetime(year + 2000 if year < 100 else year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


def _time_of(label: str) -> datetime | None:
    try:
        return datetime.strptime(label, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
