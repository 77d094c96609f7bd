"""Terminal output of `bench certify`: its progress, the table of cases, and the failed criteria."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.simulation.acceptance import CaseSummary, Criterion
from bench.simulation.validation_report import CaseReport, Kind, ValidationReport

Answer = TypeVar("Answer")
COLUMNS = (
    "case",
    "runs",
    "error % [5, 95]",
    "coverage",
    "half-width (hint)",
    "seconds",
    "trials",
    "confirmed/truth",
    "above truth",
    "statuses",
    "criteria",
)
TITLES: dict[Kind, str] = {
    "scenario": "Scenarios",
    "engine": "Random capacities, budgets from 20 s, every second one with a neighbour's estimate",
    "adversary": "Adversaries",
}


def track_progress(answers: Iterable[Answer], total: int) -> Iterator[Answer]:
    """Yield the answers and show their number: a bar on a terminal, otherwise a line at every quarter."""
    console = Console(file=sys.stderr, highlight=False)
    columns = (TextColumn("certifying"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=total)
        for number, answer in enumerate(answers, 1):
            progress.advance(bar)
            if not console.is_terminal and number * 4 // total > (number - 1) * 4 // total:
                console.print(f"{number} of {total} tasks")
            yield answer


def print_report(report: ValidationReport, *, width: int | None = None) -> None:
    """Print the table of each kind of case, then each failed criterion with its limit.

    Args:
        report: The report of a strategy.
        width: Columns of the output; None for those of the terminal, or 200 if it is not one.
    """
    console = Console(highlight=False, width=width or (None if sys.stdout.isatty() else 200))
    for kind, title in TITLES.items():
        cases = [case for case in report.cases if case.kind == kind and case.summary]
        if cases:
            console.print(_table(title, cases))
    for criterion in report.criteria:
        if criterion.case.startswith(("all engines", "map")) or "by the mutation" in criterion.name:
            word = "ok    " if criterion.passed else "FAIL  "
            console.print(f"{word}{criterion.case}: {criterion.name} {criterion.value:.3g}", markup=False)
    failed = [criterion for criterion in report.criteria if not criterion.passed]
    for criterion in failed:
        console.print(f"FAIL  {failure_text(criterion)}", markup=False)
    count = len(report.criteria)
    console.print(f"{report.strategy}: {count - len(failed)} of {count} criteria passed")


def failure_text(criterion: Criterion) -> str:
    """Return a failed criterion as a line with its value and its limit."""
    relation = ">=" if criterion.at_least else "<="
    return f"{criterion.case}: {criterion.name} {criterion.value:.3g}, required {relation} {criterion.limit:.3g}"


def _table(title: str, cases: Sequence[CaseReport]) -> Table:
    table = Table(*COLUMNS, title=title, title_justify="left", box=None, pad_edge=False)
    for case in cases:
        assert case.summary is not None
        passed = all(criterion.passed for criterion in case.criteria)
        table.add_row(*_columns(case.summary), "ok" if passed else "FAIL", style="" if passed else "bold red")
    return table


def _columns(summary: CaseSummary) -> tuple[str, ...]:
    if summary.error is None or summary.low_error is None or summary.high_error is None:
        error = "–"
    else:
        low, middle, high = (100 * each for each in (summary.low_error, summary.error, summary.high_error))
        error = f"{middle:+.1f} [{low:+.1f}, {high:+.1f}]"
    statuses = ", ".join(f"{status} {count}" for status, count in sorted(summary.statuses.items()))
    return (
        summary.case, str(summary.runs), error, f"{summary.coverage:.1%}",
        f"{_percent(summary.half_width)} ({_percent(summary.hinted_half_width)})",
        f"{summary.seconds:.0f}", f"{summary.trials:.1f}", _percent(summary.confirmed), f"{summary.above:.1%}",
        statuses,
    )  # fmt: skip


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
