"""Several runs side by side in one page: each cell's rates, and how many times the first run's rate each other one has.

A ratio has an interval that follows from the two intervals; a run is called faster or slower only where that interval leaves out 1.
Bounds stay bounds: what lies above an "at least" is not known, so that nothing is said to be slower than it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from markupsafe import Markup
from msgspec import Struct

from bench.errors import UsageError
from bench.measurement import Result
from bench.scenario import Cell
from bench.units import seconds_text, size_text
from reports.atlas import winners_of_run
from reports.evidence import Evidence, read_evidence
from reports.inline import Inliner
from reports.page import templates
from reports.provenance import machine_of, subject_of
from reports.theory import rate_of
from reports.winner import finding_of
from reports.wording import claim_of, interval_text

Word = Literal["faster", "slower", "undecided", ""]


class Ratio(Struct, frozen=True):
    """How one result stands to another: an estimate where both are measured, and the ends that are certain."""

    word: Word
    estimate: float | None
    low: float
    high: float


class Side(Struct, frozen=True):
    """One run's part of a line."""

    claim: str
    interval: str
    ratio: str
    word: Word


class Line(Struct, frozen=True):
    """One cell."""

    system: str
    size: str
    cost: str
    sides: tuple[Side, ...]


class Column(Struct, frozen=True):
    """One run, at the head of the page."""

    name: str
    title: str
    finding: str
    facts: tuple[tuple[str, str], ...]
    winners: Markup | None


def write(runs: Sequence[Path], out: Path) -> Path:
    """Write a page of these runs; the first is what the others are held against."""
    found = [read_evidence(run) for run in runs]
    names = [run.resolve().name for run in runs]
    lines = lines_of(found)
    inliners = [Inliner({}, name=f"r{number}-") for number in range(len(found))]
    columns = [_column(name, evidence, inliner) for name, evidence, inliner in zip(names, found, inliners, strict=True)]
    text = (
        templates()
        .get_template("compare.html")
        .render(
            columns=columns,
            lines=lines,
            summary=summary_of(lines, names),
            styles=Markup("\n".join(one.css() for one in inliners)),  # noqa: S704
        )
    )
    path = out / f"compare-{'-vs-'.join(names)}"[:200]
    path = path.with_name(f"{path.name}.html")
    try:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UsageError(f"{path}: cannot be written ({problem.strerror}); choose another place with --out") from None
    return path


def lines_of(found: Sequence[Evidence]) -> list[Line]:
    """A line for every cell that any of the runs has, in the order of the first that has it."""
    results: list[dict[Cell, Result | None]] = [{known.cell: known.result for known in evidence.cells} for evidence in found]
    cells = dict.fromkeys(cell for known in results for cell in known)
    return [_line(cell, [known.get(cell) if cell in known else None for known in results]) for cell in cells]


def _line(cell: Cell, results: Sequence[Result | None]) -> Line:
    base = results[0]
    sides = [_side(base if number else None, result) for number, result in enumerate(results)]
    return Line(cell.system, size_text(cell.message_bytes), seconds_text(cell.cpu_seconds), tuple(sides))


def _side(base: Result | None, result: Result | None) -> Side:
    if result is None:
        return Side("", "", "", "")
    ratio = ratio_of(base, result) if base is not None else None
    interval = interval_text(result.low_hz, result.high_hz)
    return Side(claim_of(result), interval, _text(ratio), ratio.word if ratio is not None else "")


def ratio_of(base: Result, result: Result) -> Ratio | None:
    """How many times the base's rate a result has; None where one of them has no rate at all."""
    below, above = _ends(base), _ends(result)
    if below is None or above is None:
        return None
    (base_low, base_high), (low, high) = below, above
    least = low / base_high
    most = high / base_low if base_low > 0 else float("inf")
    rates = [rate_of(one) for one in (base, result) if one.status == "measured"]
    estimate = rates[1] / rates[0] if len(rates) == 2 and rates[0] and rates[1] else None
    return Ratio("faster" if least > 1 else "slower" if most < 1 else "undecided", estimate, least, most)


def _ends(result: Result) -> tuple[float, float] | None:
    """Between which rates a result may lie."""
    if result.status in ("failed", "unsupported") or (result.low_hz is None and result.high_hz is None):
        return None
    high = result.high_hz if result.high_hz is not None and result.status != "lower-bound" else float("inf")
    return result.low_hz or 0.0, high


def _text(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    if ratio.estimate is not None:
        return f"{ratio.estimate:.2f} × [{ratio.low:.2f} – {ratio.high:.2f}]"
    if ratio.high == float("inf"):
        return f"≥ {ratio.low:.2f} ×" if ratio.low > 0 else ""
    return f"≤ {ratio.high:.2f} ×"


def summary_of(lines: Sequence[Line], names: Sequence[str]) -> list[str]:
    """A sentence for each run but the first."""
    said = []
    for number, name in enumerate(names[1:], 1):
        words = [line.sides[number].word for line in lines]
        faster, slower, undecided = (words.count(word) for word in ("faster", "slower", "undecided"))
        said.append(
            f"Held against {names[0]}, {name} is faster in {faster} cells, slower in {slower}, and in {undecided} these runs "
            f"cannot tell; {len(words) - faster - slower - undecided} cells have no rate in both."
        )
    return said


def _column(name: str, evidence: Evidence, inliner: Inliner) -> Column:
    winners = winners_of_run(evidence)
    facts = [*subject_of(evidence), *machine_of(evidence)]
    element = Markup(inliner.element(winners)) if winners is not None else None  # noqa: S704 escaped by matplotlib
    return Column(name, evidence.title, finding_of(evidence), tuple(facts), element)
