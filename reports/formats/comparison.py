"""Several runs side by side in one page: each cell's rates, and how many times the first run's rate each other one has.

Who is faster is for bench.analysis.comparison to say: over a whole map of equals at most one in twenty shows any change.
"""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup
from msgspec import Struct

from bench.analysis import comparison
from bench.analysis.repeatability import agreements
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.plugins.plugin import ReportPlugin
from bench.units import seconds_text
from reports.data.labels import claim_of, interval_text
from reports.data.metadata import machine_of, subject_of
from reports.data.run_data import RunData, read_run_data
from reports.data.winners import finding_of
from reports.figures.catalog import winners_of_run
from reports.figures.forest import forest_picture
from reports.figures.svg_embed import Inliner
from reports.formats.html_page import templates

MAX_SENTENCES = 3
"""Of a summary; with more runs there is one for all."""


class Side(Struct, frozen=True):
    """One run's part of a line."""

    claim: str
    interval: str
    ratio: str
    word: str
    """faster, slower, undecided, not compared; empty for the first run, and where there is nothing"""


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


class Repeat(Struct, frozen=True):
    """A cell that several of the runs measured: its forest plot, and whether the spread is what the intervals promise."""

    name: str
    sentence: str
    forest: Markup


def write(runs: Sequence[Path], out: Path) -> Path:
    """Write a page of these runs; the first is what the others are held against."""
    found = [read_run_data(run) for run in runs]
    names = [run.resolve().name for run in runs]
    lines = lines_of(found)
    inliners = [Inliner({}, name=f"r{number}-") for number in range(len(found))]
    columns = [_column(name, run_data, inliner) for name, run_data, inliner in zip(names, found, inliners, strict=True)]
    forests = Inliner({}, name="forest-")
    repeats = repeats_of(found, forests)
    text = (
        templates()
        .get_template("compare.html")
        .render(
            columns=columns,
            lines=lines,
            repeats=repeats,
            summary=summary_of(lines, names),
            styles=Markup("\n".join(one.css() for one in (*inliners, forests))),  # noqa: S704
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


def lines_of(found: Sequence[RunData]) -> list[Line]:
    """A line for every cell that any of the runs has, in the order of the first that has it."""
    results: list[dict[Cell, Result]] = [
        {known.cell: known.result for known in run_data.cells if known.result is not None} for run_data in found
    ]
    base = list(results[0].values())
    compared = [{each.cell: each for each in comparison.compare(base, list(known.values()))} for known in results[1:]]
    cells = dict.fromkeys(known.cell for run_data in found for known in run_data.cells)
    return [
        Line(
            cell.system, cell.size_text, seconds_text(cell.cpu_seconds),
            tuple(_side(known.get(cell), each.get(cell)) for known, each in zip(results, [{}, *compared], strict=True)),
        )
        for cell in cells
    ]  # fmt: skip


def repeats_of(found: Sequence[RunData], inliner: Inliner) -> list[Repeat]:
    """A repeat for each cell that enough of the runs measured with an interval."""
    results = [[known.result for known in run_data.cells if known.result is not None] for run_data in found]
    repeats = []
    for number, agreed in enumerate(agreements(results)):
        rows = [
            (f"run {place}", result)
            for place, known in enumerate(results, 1)
            for result in known
            if result.system == agreed.cell.system and result.message_bytes == agreed.cell.message_bytes
            and result.cpu_seconds == agreed.cell.cpu_seconds and result.status == "measured"
        ]  # fmt: skip
        element = inliner.element(forest_picture(number, agreed, rows))
        repeats.append(Repeat(agreed.name, agreed.sentence(), Markup(element)))  # noqa: S704 escaped by matplotlib
    return repeats


def _side(result: Result | None, each: comparison.CellComparison | None) -> Side:
    if result is None:
        return Side("", "", "", "")
    ratio, word = (comparison.ratio_text(each), each.word) if each is not None else ("", "")
    return Side(claim_of(result), interval_text(result.low_hz, result.high_hz), ratio, word)


def summary_of(lines: Sequence[Line], names: Sequence[str]) -> list[str]:
    """A sentence for each run but the first; one for all of them where there are many."""
    words = [[line.sides[number].word for line in lines] for number in range(1, len(names))]
    if len(words) > MAX_SENTENCES:
        return [
            _sentence(
                names[0],
                f"each of the other {len(words)} runs, cell by cell,",
                [word for of_run in words for word in of_run],
            )
        ]
    return [_sentence(names[0], name, of_run) for name, of_run in zip(names[1:], words, strict=True)]


def _sentence(first: str, name: str, words: Sequence[str]) -> str:
    faster, slower, undecided = (words.count(word) for word in ("faster", "slower", "undecided"))
    return (
        f"Held against {first}, {name} is faster in {faster} cells, slower in {slower}, and in {undecided} these runs "
        f"cannot tell; {len(words) - faster - slower - undecided} cells cannot be compared."
    )


def _column(name: str, run_data: RunData, inliner: Inliner) -> Column:
    winners = winners_of_run(run_data)
    facts = [*subject_of(run_data), *machine_of(run_data)]
    element = Markup(inliner.element(winners)) if winners is not None else None  # noqa: S704 escaped by matplotlib
    return Column(name, run_data.title, finding_of(run_data), tuple(facts), element)


plugin = ReportPlugin(compare=write)
