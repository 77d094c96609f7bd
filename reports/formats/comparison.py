"""A page that compares several runs: the rates of each cell, and the ratio of each run's rate to the first run's.

bench.analysis.comparison decides which run is faster: of twenty maps of equal systems at most one shows any difference.
"""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup
from msgspec import Struct

from bench.analysis import comparison
from bench.analysis.repeatability import (
    MIN_RUNS,
    Agreement,
    agreements,
    is_repeatable,
    overall_sentence,
    run_factors,
)
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.plugins.plugin import ReportPlugin
from bench.system.machine_speed import speed_ratios
from bench.units import seconds_text
from reports.data.cost import make_cost_table
from reports.data.labels import format_claim, format_result_interval
from reports.data.metadata import describe_machine, describe_subject
from reports.data.run_data import RunData, read_run_data
from reports.data.winners import summarize_run
from reports.figures.forest import make_forest_plot
from reports.figures.svg_embed import SvgEmbedder
from reports.figures.winner_map import make_winner_map
from reports.formats.html_page import load_templates

MAX_SENTENCES = 3
"""Of a summary; with more runs, one sentence is about all of them."""


class Side(Struct, frozen=True):
    """One run's part of a row."""

    claim: str
    interval: str
    ratio: str
    word: str
    """faster, slower, undecided or not compared; empty for the first run, and without a result"""
    why: str
    """why it is not compared"""


class ComparedCell(Struct, frozen=True):
    """One cell."""

    system: str
    size: str
    cost: str
    sides: tuple[Side, ...]


class Column(Struct, frozen=True):
    """The header of one run."""

    name: str
    title: str
    finding: str
    facts: tuple[tuple[str, str], ...]
    winners: Markup | None
    disagreement: str


class Repeat(Struct, frozen=True):
    """A cell of several runs: its forest plot, and a sentence that compares the spread with the intervals."""

    name: str
    sentence: str
    forest: Markup


def write(runs: Sequence[Path], out: Path) -> Path:
    """Write a page that compares runs with the first one; return its path.

    Raises:
        UsageError: a folder is no run folder, or the page cannot be written.
    """
    every = [read_run_data(run) for run in runs]
    names = [run.resolve().name for run in runs]
    rows = compare_cells(every)
    embedders = [SvgEmbedder({}, name=f"r{number}-") for number in range(len(every))]
    columns = [
        _make_column(name, run_data, embedder) for name, run_data, embedder in zip(names, every, embedders, strict=True)
    ]
    forests = SvgEmbedder({}, name="forest-")
    repeats = make_repeats(every, forests)
    agreement = summarize_agreement(agreements(list_results(every)), len(every))
    factors = run_factors(list_results(every))
    text = (
        load_templates()
        .get_template("compare.html")
        .render(
            columns=columns,
            rows=rows,
            repeats=repeats,
            cost=make_cost_table(every),
            agreement=" ".join(filter(None, [agreement, factors.sentence() if factors else ""])),
            summary=[*summarize_comparison(rows, names), *summarize_speeds(every)],
            styles=Markup("\n".join(embedder.css() for embedder in (*embedders, forests))),  # noqa: S704  matplotlib's styles
        )
    )
    return write_comparison(names, text, out)


def write_comparison(names: Sequence[str], text: str, out: Path) -> Path:
    """Write the page that compares runs of these names; return its path, or raise UsageError."""
    path = out / f"compare-{'-vs-'.join(names)}"[:200]
    path = path.with_name(f"{path.name}.html")
    try:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UsageError(f"{path}: cannot be written ({problem.strerror}); choose another folder with --out") from None
    return path


def compare_cells(runs: Sequence[RunData]) -> list[ComparedCell]:
    """Return a row for every cell of any run, in the order of the first run that has it."""
    results: list[dict[Cell, Result]] = [
        {cell_data.cell: cell_data.result for cell_data in run_data.cells if cell_data.result is not None}
        for run_data in runs
    ]
    base = list(results[0].values())
    compared = [
        {each.cell: each for each in comparison.compare(base, list(by_cell.values()), speeds=tuple(ratios.values()))}
        for by_cell, ratios in zip(results[1:], list_speed_ratios(runs), strict=True)
    ]
    cells = dict.fromkeys(cell_data.cell for run_data in runs for cell_data in run_data.cells)
    return [
        ComparedCell(
            cell.system, cell.size_text, seconds_text(cell.cpu_seconds),
            tuple(_make_side(by_cell.get(cell), each.get(cell)) for by_cell, each in zip(results, [{}, *compared],
            strict=True)),
        )
        for cell in cells
    ]  # fmt: skip


def list_speed_ratios(runs: Sequence[RunData]) -> list[dict[str, float]]:
    """Return for each run but the first how fast its machine was, divided by that of the first one."""
    return [speed_ratios(runs[0].speed, run_data.speed) for run_data in runs[1:]]


def summarize_speeds(runs: Sequence[RunData]) -> list[str]:
    """Return a sentence about the machine's speed in the runs; none where it was not measured in all of them."""
    ratios = list_speed_ratios(runs)
    if not all(ratios):
        return []
    kinds = "; ".join(f"{kind} {', '.join(f'{each[kind]:.2f}' for each in ratios)}" for kind in ratios[0])
    measured = f"By a fixed piece of work, the machine was this many times as fast as in the first run: {kinds}."
    return [f"{measured} A difference that this may explain is undecided."]


def make_repeats(runs: Sequence[RunData], embedder: SvgEmbedder) -> list[Repeat]:
    """Return a repeat for each cell that enough runs measured with a 95 % interval."""
    results = list_results(runs)
    repeats = []
    for number, agreed in enumerate(agreements(results)):
        rows = [
            (f"run {position}", result)
            for position, of_run in enumerate(results, 1)
            for result in of_run
            if result.cell == agreed.cell and is_repeatable(result)
        ]
        element = embedder.embed(make_forest_plot(number, agreed, rows))
        repeats.append(Repeat(agreed.name, agreed.sentence(), Markup(element)))  # noqa: S704  escaped by matplotlib
    return repeats


def list_results(runs: Sequence[RunData]) -> list[list[Result]]:
    """Return the results of each run."""
    return [[cell_data.result for cell_data in run_data.cells if cell_data.result is not None] for run_data in runs]


def summarize_agreement(agreed: Sequence[Agreement], runs: int) -> str:
    """Return the finding about repeated cells; empty for too few runs."""
    if runs < MIN_RUNS:
        return ""
    return overall_sentence(agreed) or "No cell has a 95 % interval in three runs; their spread cannot be tested."


def _make_side(result: Result | None, each: comparison.CellComparison | None) -> Side:
    if result is None:
        return Side("", "", "", "", "")
    ratio, word, why = (comparison.ratio_text(each), each.word, each.why) if each is not None else ("", "", "")
    return Side(format_claim(result), format_result_interval(result), ratio, word, why)


def summarize_comparison(rows: Sequence[ComparedCell], names: Sequence[str]) -> list[str]:
    """Return a sentence for each run but the first; one for all of them if there are many."""
    words = [[row.sides[number].word for row in rows] for number in range(1, len(names))]
    if len(words) > MAX_SENTENCES:
        return [
            _summarize_words(
                names[0],
                f"each of the other {len(words)} runs, cell by cell,",
                [word for of_run in words for word in of_run],
            )
        ]
    return [_summarize_words(names[0], name, of_run) for name, of_run in zip(names[1:], words, strict=True)]


def _summarize_words(first: str, name: str, words: Sequence[str]) -> str:
    faster, slower, undecided = (words.count(word) for word in ("faster", "slower", "undecided"))
    return (
        f"Compared with {first}, {name} is faster in {faster} cells, slower in {slower}, and undecided in {undecided}; "
        f"{len(words) - faster - slower - undecided} cells cannot be compared."
    )


def _make_column(name: str, run_data: RunData, embedder: SvgEmbedder) -> Column:
    winners = make_winner_map(run_data)
    facts = [*describe_subject(run_data), *describe_machine(run_data.record)]
    element = Markup(embedder.embed(winners)) if winners is not None else None  # noqa: S704  escaped by matplotlib
    return Column(name, run_data.title, summarize_run(run_data), tuple(facts), element, run_data.disagreement)


plugin = ReportPlugin(compare=write)
