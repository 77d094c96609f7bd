"""Reading of the journal, trials.jsonl: its lines, and the trial behind a line with its series."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bench.errors import UsageError
from bench.storage.checksums import damaged_files, is_intact
from bench.storage.records import JournalEntry, decode_record
from bench.storage.series_files import REMEDY, read_batches, read_series

FILE = "trials.jsonl"


class JournalLine(Struct, frozen=True):
    """A line of the journal; the measurement of its entry is without its series."""

    number: int
    """from 1"""
    entry: JournalEntry
    intact: bool | None
    """whether it is as it was written; None if it has no checksum"""


def read_journal(folder: Path) -> list[JournalLine]:
    """Return the lines of a run's journal; UsageError if one is no trial."""
    return [read_line(folder, number, raw) for number, raw in raw_lines(folder)]


def raw_lines(folder: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of each whole line; a last line without an end was written in part, by a killed harness.

    A journal that is missing has no lines.
    """
    path = folder / FILE
    if path.exists():
        yield from enumerate(path.read_bytes().split(b"\n")[:-1], 1)


def read_line(folder: Path, number: int, raw: bytes) -> JournalLine:
    """Return a line of the journal; UsageError if it is no trial."""
    return JournalLine(number, decode_record(raw, JournalEntry, f"{folder / FILE}:{number}"), is_intact(raw))


def read_line_trial(folder: Path, line: JournalLine) -> JournalEntry:
    """Return the trial of a line, with its series.

    Raises:
        UsageError: The line or a file of its series is not as it was written; the message says what to do.
    """
    entry = line.entry
    if line.intact is False:
        raise UsageError(f"{folder / FILE}:{line.number}: is not as it was written; {REMEDY.format(folder)}")
    for name, problem in damaged_files(folder, entry.files, within="series/").items():
        raise UsageError(f"{folder / name}: {problem}; {REMEDY.format(folder)}")
    series = read_series(folder, entry.cell, entry.measurement)
    batches = read_batches(folder, entry.cell, entry.measurement)
    return replace(entry, measurement=replace(entry.measurement, series=series, batches=batches))
