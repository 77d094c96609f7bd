"""What a campaign did and found: one JSON line each, written while it runs, and the sums of them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct


class FaultRecord(Struct, frozen=True, tag="fault"):
    """One fault that was done."""

    attempt: int
    subject: str
    kind: str
    victim: str
    name: str
    """of the process and its pid, or of the file"""
    after_s: float


class AttemptRecord(Struct, frozen=True, tag="attempt"):
    """A run under attack that has ended."""

    attempt: int
    subject: str
    seconds: float
    code: int | None
    last_line: str
    violations: tuple[str, ...]


class HistoryRecord(Struct, frozen=True, tag="history"):
    """A history of HarmonicIO that has ended; counts of messages."""

    attempt: int
    seconds: float
    sent: int
    acknowledged: int
    processed: int
    """different ones"""
    repeated: int
    """processed more than once: more often than they are different"""
    lost: int
    """acknowledged, and never processed"""
    violations: tuple[str, ...]


class FuzzRecord(Struct, frozen=True, tag="fuzz"):
    """Inputs that were given to a target."""

    target: str
    seed: int
    inputs: int
    seconds: float
    grown_bytes: int
    """by which the memory of the process has grown after the first tenth"""
    violations: tuple[str, ...]


Record = FaultRecord | AttemptRecord | HistoryRecord | FuzzRecord
_DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


class Log:
    """A file of records, appended to while a campaign runs."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path

    def add(self, record: Record) -> None:
        """Append a record; a reader sees it at once."""
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")

    def records(self) -> list[Record]:
        """Return what is in it; nothing before the first record."""
        return read_log(self._path) if self._path.exists() else []


def read_log(path: Path) -> list[Record]:
    """Return the records of a log; a last line without an end was being written."""
    return [_DECODER.decode(line) for line in path.read_bytes().split(b"\n")[:-1]]


def violations_of(records: Iterable[Record]) -> list[str]:
    """Return all violations, with the attempt or the target in front."""
    found = []
    for record in records:
        if isinstance(record, FaultRecord):
            continue
        place = record.target if isinstance(record, FuzzRecord) else f"attempt {record.attempt}"
        found += [f"{place}: {text}" for text in record.violations]
    return found


def summary(records: Sequence[Record]) -> str:
    """Return the sums of a campaign as Markdown: faults by kind and victim, runs, messages, inputs."""
    faults = Counter((one.victim, one.kind) for one in records if isinstance(one, FaultRecord))
    attempts = [one for one in records if isinstance(one, AttemptRecord)]
    histories = [one for one in records if isinstance(one, HistoryRecord)]
    lines = _table(("what was hit", "how", "times"), [(*key, f"{number:,}") for key, number in sorted(faults.items())])
    lines += ["", *_table(("", "number"), [
        ("faults", f"{sum(faults.values()):,}"),
        ("runs attacked, each resumed until its end", f"{len(attempts):,}"),
        ("histories of HarmonicIO", f"{len(histories):,}"),
        ("messages acknowledged in them, checked one by one", f"{sum(one.acknowledged for one in histories):,}"),
        ("of these lost", f"{sum(one.lost for one in histories):,}"),
        ("messages processed again", f"{sum(one.repeated for one in histories):,}"),
        ("hours", f"{sum(one.seconds for one in [*attempts, *histories]) / 3600:.2f}"),
        ("violations", f"{len(violations_of([*attempts, *histories])):,}"),
    ])]  # fmt: skip
    fuzzed = [one for one in records if isinstance(one, FuzzRecord)]
    if fuzzed:
        lines += ["", *_table(("fuzzing target", "inputs", "inputs/s", "failures"), _fuzz_rows(fuzzed))]
    return "\n".join(lines) + "\n"


def _fuzz_rows(records: Sequence[FuzzRecord]) -> list[tuple[str, str, str, str]]:
    rows = []
    for target in sorted({record.target for record in records}):
        own = [record for record in records if record.target == target]
        inputs, seconds = sum(record.inputs for record in own), sum(record.seconds for record in own)
        failures = sum(len(record.violations) for record in own)
        rows.append((target, f"{inputs:,}", f"{inputs / max(seconds, 1e-9):,.0f}", f"{failures:,}"))
    return rows


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
