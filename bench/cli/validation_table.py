"""How a certification looks: its progress, its table, and the gates that failed."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.simulation.acceptance import Criterion, Row
from bench.simulation.validation_report import Part, ValidationReport

Answer = TypeVar("Answer")
COLUMNS = (
    "case",
    "runs",
    "error % [5, 95]",
    "covered",
    "width",
    "SUT s",
    "trials",
    "confirmed",
    "above",
    "statuses",
    "gates",
)


def watched(answers: Iterable[Answer], total: int) -> Iterator[Answer]:
    """The same answers, with a bar on the terminal, or a line at every quarter where there is none."""
    console = Console(file=sys.stderr, highlight=False)
    columns = (TextColumn("certifying"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=total)
        for number, answer in enumerate(answers, 1):
            progress.advance(bar)
            if not console.is_terminal and number * 4 // total > (number - 1) * 4 // total:
                console.print(f"{number} of {total} tasks")
            yield answer


def show(certificate: ValidationReport, *, width: int | None = None) -> None:
    """Print the table, then each gate that failed with what was asked."""
    console = Console(highlight=False, width=width or (None if sys.stdout.isatty() else 200))
    for kind, title in (("scenario", "Scenarios"), ("neighbour", "With a neighbour's estimate"), ("family", "Random ceilings"),
                        ("hasty", "Half a minute each"), ("adversary", "Adversaries")):  # fmt: skip
        rows = [part for part in certificate.parts if part.kind == kind and part.row]
        if rows:
            console.print(_table(title, rows))
    for gate in certificate.gates:
        if gate.case == "all of these" or "saved" in gate.name or "broken by" in gate.name:
            console.print(
                ("ok    " if gate.passed else "FAIL  ") + f"{gate.case}: {gate.name} {gate.value:.3g}", markup=False
            )
    failed = [gate for gate in certificate.gates if not gate.passed]
    for gate in failed:
        console.print(f"FAIL  {failure(gate)}", markup=False)
    console.print(
        f"{certificate.strategy}: {len(certificate.gates) - len(failed)} of {len(certificate.gates)} gates passed"
    )


def failure(gate: Criterion) -> str:
    """A failed gate in a line, with both figures."""
    return f"{gate.case}: {gate.name} {gate.value:.3g}, asked {'>=' if gate.least else '<='} {gate.limit:.3g}"


def _table(title: str, parts: Sequence[Part]) -> Table:
    table = Table(*COLUMNS, title=title, title_justify="left", box=None, pad_edge=False)
    for part in parts:
        assert part.row is not None
        passed = all(gate.passed for gate in part.gates)
        table.add_row(*_cells(part.row), "ok" if passed else "FAIL", style="" if passed else "bold red")
    return table


def _cells(row: Row) -> tuple[str, ...]:
    if row.error is None or row.low_error is None or row.high_error is None:
        error = "–"
    else:
        error = f"{100 * row.error:+.1f} [{100 * row.low_error:+.1f}, {100 * row.high_error:+.1f}]"
    statuses = ", ".join(f"{status} {count}" for status, count in sorted(row.statuses.items()))
    return (
        row.case, str(row.runs), error, f"{row.coverage:.1%}", _percent(row.width), f"{row.seconds:.0f}", f"{row.trials:.1f}",
        _percent(row.confirmed), f"{row.above:.1%}", statuses,
    )  # fmt: skip


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
