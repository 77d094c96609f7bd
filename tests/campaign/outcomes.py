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
    ended: bool = False
    """whether SIGKILL ended the process, at once or after it was stopped"""

    @property
    def hit(self) -> str:
        """What was hit; where it matters, which program of it."""
        program = self.name.rpartition(" ")[0]
        return f"{self.victim}: {program}" if self.victim in ("framework", "source") and program else self.victim


class AttemptRecord(Struct, frozen=True, tag="attempt"):
    """A run under attack that has ended."""

    attempt: int
    subject: str
    seconds: float
    code: int | None
    last_line: str
    violations: tuple[str, ...]


class DeliveryRecord(Struct, frozen=True, tag="delivery"):
    """Messages of one system in a run under attack that has ended, of the trials that are drained."""

    attempt: int
    system: str
    trials: int
    confirmed: int
    """messages that the source took"""
    lost: int
    duplicated: int


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
    """by which the memory of the process has grown in the second half, or since the first piece if that is too much"""
    violations: tuple[str, ...]


class SoakRecord(Struct, frozen=True, tag="soak"):
    """A process or a folder that was watched for long: medians of its second and of its last quarter."""

    role: str
    seconds: float
    bytes_before: int
    """of anonymous resident memory, or on the disk"""
    bytes_after: int
    descriptors_before: int
    descriptors_after: int
    violations: tuple[str, ...]


HARNESS_BAR, OTHERS_BAR, MESSAGES_BAR = 200, 500, 10_000_000
"""What an hour has to reach: kills of the harness, faults of other parties, messages acknowledged."""


MIN_SOAK_S = 300.0
"""For a process to be in the table."""


class Figures(Struct, frozen=True):
    """Sums of a campaign; as JSON in its folder."""

    hours: float
    """of the longest of its parts, which run side by side"""
    faults: int
    harness_killed: int
    """by SIGKILL"""
    others_hit: int
    """faults of other processes, of HarmonicIO's disk and of its network"""
    runs: int
    histories: int
    acknowledged: int
    lost: int
    repeated: int
    inputs: int
    """invented, for all targets"""
    violations: int


Record = FaultRecord | AttemptRecord | DeliveryRecord | HistoryRecord | FuzzRecord | SoakRecord
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
        if isinstance(record, FaultRecord | DeliveryRecord):
            continue
        match record:
            case FuzzRecord():
                place = record.target
            case SoakRecord():
                place = "soak"
            case _:
                place = f"attempt {record.attempt}"
        found += [f"{place}: {text}" for text in record.violations]
    return found


def figures_of(records: Sequence[Record]) -> Figures:
    """Return the sums of a campaign."""
    faults = [one for one in records if isinstance(one, FaultRecord)]
    attempts = [one for one in records if isinstance(one, AttemptRecord)]
    histories = [one for one in records if isinstance(one, HistoryRecord)]
    killed = sum(one.victim == "harness" and one.ended for one in faults)
    inputs = [one for one in records if isinstance(one, FuzzRecord)]
    known, systems = ([one for one in attempts if (one.subject == "known") == own] for own in (True, False))
    side_by_side = [sum(one.seconds for one in part) for part in (known, systems, histories, inputs)]
    return Figures(
        hours=max(side_by_side) / 3600, faults=len(faults), harness_killed=killed,
        others_hit=sum(one.victim not in ("harness", "run folder", "machine") for one in faults),
        runs=len(attempts), histories=len(histories), acknowledged=sum(one.acknowledged for one in histories),
        lost=sum(one.lost for one in histories), repeated=sum(one.repeated for one in histories),
        inputs=sum(one.inputs for one in inputs), violations=len(violations_of(records)),
    )  # fmt: skip


def bars_missed(records: Sequence[Record]) -> list[str]:
    """Return what an hour should have reached, and did not."""
    figures = figures_of(records)
    reached = {
        "kills of the harness": (figures.harness_killed, HARNESS_BAR),
        "faults of other parties": (figures.others_hit, OTHERS_BAR),
        "messages acknowledged": (figures.acknowledged, MESSAGES_BAR),
    }
    return [f"{number:,} {what}, not {bar:,}" for what, (number, bar) in reached.items() if number < bar]


def progress(records: Sequence[Record]) -> str:
    """Return the sums of a campaign in one line."""
    figures = figures_of(records)
    return (
        f"{figures.harness_killed:,} kills of the harness, {figures.others_hit:,} faults of others, "
        f"{figures.acknowledged:,} messages acknowledged, {figures.lost:,} lost, {figures.inputs:,} inputs, "
        f"{figures.runs + figures.histories:,} attempts, {figures.violations:,} violations"
    )


def summary(records: Sequence[Record]) -> str:
    """Return the sums of a campaign as Markdown: faults by kind and victim, runs, messages, inputs."""
    faults = Counter((one.hit, one.kind) for one in records if isinstance(one, FaultRecord))
    lines = _table(("what was hit", "how", "times"), [(*key, f"{number:,}") for key, number in sorted(faults.items())])
    lines += ["", *_table(("", "number", "an hour at this pace", "bar for an hour"), _figure_rows(figures_of(records)))]
    delivered = [one for one in records if isinstance(one, DeliveryRecord)]
    if delivered:
        head = ("system under attack", "trials", "messages confirmed", "lost", "processed twice")
        lines += ["", *_table(head, _delivery_rows(delivered))]
    fuzzed = [one for one in records if isinstance(one, FuzzRecord)]
    if fuzzed:
        lines += ["", *_table(("fuzzing target", "inputs", "inputs/s", "failures"), _fuzz_rows(fuzzed))]
    soaked = [one for one in records if isinstance(one, SoakRecord) and one.seconds >= MIN_SOAK_S and one.role != "all"]
    if soaked:
        quarters = ("in the second quarter", "in the last quarter")
        head = ("role", "minutes", *(f"{what} {when}" for what in ("MiB", "open files") for when in quarters))
        lines += ["", *_table(head, map(_soak_row, sorted(soaked, key=lambda one: one.role)))]
    return "\n".join(lines) + "\n"


def _figure_rows(figures: Figures) -> list[tuple[str, str, str, str]]:
    def row(label: str, number: int, *, bar: str = "") -> tuple[str, str, str, str]:
        return label, f"{number:,}", f"{number / figures.hours:,.0f}" if figures.hours else "", bar

    return [
        row("faults", figures.faults),
        row("kills of the harness", figures.harness_killed, bar=f"{HARNESS_BAR:,}"),
        row("faults of other parties", figures.others_hit, bar=f"{OTHERS_BAR:,}"),
        row("runs attacked, each resumed until its end", figures.runs),
        row("histories of HarmonicIO", figures.histories),
        row("messages acknowledged in them, checked one by one", figures.acknowledged, bar=f"{MESSAGES_BAR:,}"),
        ("of these lost", f"{figures.lost:,}", "", "0"),
        row("messages processed again", figures.repeated),
        ("hours", f"{figures.hours:.2f}", "", ""),
        ("violations", f"{figures.violations:,}", "", "0"),
    ]


def _delivery_rows(records: Sequence[DeliveryRecord]) -> list[tuple[str, ...]]:
    rows = []
    for system in sorted({record.system for record in records}):
        own = [record for record in records if record.system == system]
        columns = ("trials", "confirmed", "lost", "duplicated")
        rows.append((system, *(f"{sum(getattr(record, column) for record in own):,}" for column in columns)))
    return rows


def _fuzz_rows(records: Sequence[FuzzRecord]) -> list[tuple[str, str, str, str]]:
    rows = []
    for target in sorted({record.target for record in records}):
        own = [record for record in records if record.target == target]
        inputs, seconds = sum(record.inputs for record in own), sum(record.seconds for record in own)
        failures = sum(len(record.violations) for record in own)
        rows.append((target, f"{inputs:,}", f"{inputs / max(seconds, 1e-9):,.0f}", f"{failures:,}"))
    return rows


def _soak_row(record: SoakRecord) -> tuple[str, ...]:
    sizes = (f"{size / 2**20:,.1f}" for size in (record.bytes_before, record.bytes_after))
    files = (f"{number}" if number else "" for number in (record.descriptors_before, record.descriptors_after))
    return record.role, f"{record.seconds / 60:.0f}", *sizes, *files


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
