"""Excerpts of a run's logs: the last lines that were written during the trials of one cell."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from reports.data.run_data import CellData

MAX_LINES, MAX_LINE_LENGTH = 12, 240
MAX_BYTES = 8 * 2**20
"""Bytes that are read from the end of a log."""
MARGIN_BEFORE, MARGIN_AFTER = timedelta(seconds=15), timedelta(seconds=45)
_STAMP = re.compile(r"^\W{0,2}((?:\d\d)?\d\d)[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)")


class LogExcerpt(Struct, frozen=True):
    """The last lines of one log file."""

    file: str
    text: str


class Logs:
    """The logs of a run folder, read once."""

    def __init__(self, folder: Path) -> None:
        files = [folder / "harness.log", *sorted((folder / "logs").glob("*.log"))]
        self._logs = {file.name: _read_stamped_lines(file) for file in files if file.is_file()}

    def find_excerpts(self, cell_data: CellData) -> tuple[LogExcerpt, ...]:
        """Return the last lines of each log from the time of a cell's trials."""
        if not cell_data.trials:
            return ()
        first, last = cell_data.trials[0].measurement, cell_data.trials[-1].measurement
        began, last_began = _parse_time(first.started), _parse_time(last.started)
        if began is None or last_began is None:
            return ()
        ended = last_began + timedelta(seconds=last.seconds) + MARGIN_AFTER
        excerpts = []
        for name, lines in self._logs.items():
            within = [line for at, line in lines if at is not None and began - MARGIN_BEFORE <= at <= ended]
            if within:
                excerpts.append(LogExcerpt(name, "\n".join(within[-MAX_LINES:])))
        return tuple(excerpts)


def _read_stamped_lines(file: Path) -> list[tuple[datetime | None, str]]:
    """Return the lines of a log, each with its time (taken as UTC) or that of the line before it."""
    with file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - MAX_BYTES))
        text = log.read().decode("utf-8", "replace")
    at: datetime | None = None
    lines = []
    for line in text.splitlines():
        at = _parse_stamp(line) or at
        shown = line if len(line) <= MAX_LINE_LENGTH else f"{line[: MAX_LINE_LENGTH - 1]}…"
        lines.append((at, "".join(char if char.isprintable() or char == "\t" else "\ufffd" for char in shown)))
    return lines


def _parse_stamp(line: str) -> datetime | None:
    match = _STAMP.match(line)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(word) for word in match.groups())
    try:
        return datetime(year + 2000 if year < 100 else year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


def _parse_time(label: str) -> datetime | None:
    try:
        return datetime.strptime(label, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
