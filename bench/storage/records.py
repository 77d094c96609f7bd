"""The records in a run folder's files and their encoding as JSON; older formats are upgraded when they are read."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Measurement, Result
from bench.model.message_sizes import MessageSize
from bench.model.search_inputs import SearchInputs
from bench.storage import format_1
from bench.system.machine_speed import MachineSpeed
from bench.units import Bandwidth, Rate, Seconds, Share, Size, exact_text

FORMAT = 2
QUANTITIES = (Size, MessageSize, Seconds, Rate, Share, Bandwidth)
Upgrade = Callable[[Mapping[str, Any]], dict[str, Any]]


class RunRecord(Struct, frozen=True):
    """The scenario, the site and the circumstances of a run: run.json."""

    format: int
    scenario: Scenario
    site: Site
    facts: dict[str, Any]
    """about the machine: cores, memory, kernel, versions, git revision, command; see bench.system.host_info"""
    started: str
    """UTC, only a label"""


class JournalEntry(Struct, frozen=True):
    """One line of the journal, trials.jsonl."""

    format: int
    cell: Cell
    measurement: Measurement
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each file of the trial, by its path in the run folder; empty in runs of older versions"""


class SearchRecord(Struct, frozen=True):
    """The inputs of the search behind the result of a cell."""

    cell: Cell
    inputs: SearchInputs


class VisitRecord(Struct, frozen=True):
    """One line of visits.jsonl: a visit of a cell that has ended; times in seconds.

    With it the result of the cell follows from the journal alone: it holds what its search was given.
    """

    format: int
    cell: Cell
    budget: float
    """that the search had for all trials of the cell"""
    allotted: float
    """the part of it that was new in this visit"""
    seconds: float
    """by the clock since the visit before: trials, opening the cell, services, warm-ups, restarts"""
    trials: int
    """of the cell in the journal after this visit"""
    trial_seconds: float
    """of these trials"""
    ignored: int = 0
    """invalid trials among so many first ones are not given to the search: the cell was tried again"""
    workers: int = 1
    """processes of the load generator"""
    hint_hz: float | None = None
    """the estimate of neighbours, or of the warm-up, that the search was given, in messages/s"""
    finished: bool = False
    """whether the search wants no further trial, however much time it gets"""
    failed: bool = False
    """whether an error ended it, and the cell kept the result of an earlier visit"""
    speed: MachineSpeed | None = None
    """of this machine after the visit; None in runs of older versions"""


class Results(Struct, frozen=True):
    """All results of a run: cells.json."""

    format: int
    cells: list[Result]
    searches: list[SearchRecord] = field(default_factory=list)
    """one for each result that a search gave; empty in runs of older versions"""


class _Header(Struct):
    """The part of every record that has its format."""

    format: int


Record = TypeVar("Record", RunRecord, JournalEntry, VisitRecord, Results)
_UPGRADES: dict[type[Struct], Upgrade] = {
    RunRecord: format_1.upgrade_run,
    JournalEntry: format_1.upgrade_entry,
    VisitRecord: dict,  # format 1 has none
    Results: format_1.upgrade_results,
}


def _decode_quantity(kind: type, value: object) -> object:
    if kind in QUANTITIES:
        return kind.read(value)
    raise NotImplementedError(kind)


_DECODERS: dict[type[Struct], msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind, dec_hook=_decode_quantity) for kind in _UPGRADES
}
_HEADER_DECODER = msgspec.json.Decoder(_Header)


def encode_record(record: Struct) -> bytes:
    """Return a record as JSON: a line of a journal without its end, others indented."""
    line = msgspec.json.encode(record, enc_hook=exact_text)
    return line if isinstance(record, JournalEntry | VisitRecord) else msgspec.json.format(line, indent=1)


def decode_record(raw: bytes, kind: type[Record], source: str) -> Record:
    """Return the record that JSON of this or an older format holds.

    Args:
        raw: The JSON of one record.
        kind: The record's type.
        source: File, and line if it has several, for error messages.

    Raises:
        UsageError: It is not a record of that type, or a newer version of stream-bench wrote it.
    """
    try:
        if read_format(raw, source) < FORMAT:
            raw = msgspec.json.encode(_UPGRADES[kind](msgspec.json.decode(raw)))
        record: Record = _DECODERS[kind].decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise UsageError(f"{source}: not of format {FORMAT} ({problem})") from None
    return record


def read_format(raw: bytes, source: str) -> int:
    """Return the format of a record's JSON, 1 to FORMAT; UsageError for any other."""
    try:
        number = _HEADER_DECODER.decode(raw).format
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise UsageError(f"{source}: not of format {FORMAT} ({problem})") from None
    if not 1 <= number <= FORMAT:
        raise UsageError(
            f"{source}: is of format {number}, and this version of stream-bench reads formats 1 to {FORMAT}; "
            "use the version that wrote it, or a newer one"
        )
    return number
