"""How a run looks while it goes on: a live display in a terminal, plain lines where the output is none, or nothing."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bench.analysis.verdict import Verdict
from bench.model.cell import Cell
from bench.model.measurement import Measurement, PlannedTrial, Result
from bench.runner.run import ProgressListener
from bench.runner.trial import TrialProgress
from bench.units import rate_text, seconds_text

MARKS = {"sustained": "✓", "overloaded": "✗", "invalid": "?"}
RATE_SPAN = 1.0
"""Seconds over which the rates of the display are taken."""


@contextmanager
def watcher(cells: int, folder: Path, *, quiet: bool) -> Iterator[ProgressListener]:
    """The watcher that suits where the output goes."""
    console = Console(file=sys.stderr, highlight=False)
    if quiet:
        yield Silent()
    elif not console.is_terminal:
        console.print(f"run folder: {folder}")
        yield Lines(console)
    else:
        console.print(f"run folder: {folder}")
        screen = Screen(console, cells)
        with Live(screen, console=console, refresh_per_second=4, transient=True):
            yield screen


class Silent:
    """Watches and says nothing."""

    def note(self, text: str) -> None: ...

    def cell_begins(self, cell: Cell, number: int, of: int) -> None: ...

    def trial_begins(self, planned: PlannedTrial) -> None: ...

    def trial_progress(self, trial_progress: TrialProgress) -> None: ...

    def trial_ends(self, seen: Measurement, verdict: Verdict) -> None: ...

    def cell_ends(self, result: Result) -> None: ...


class Lines(Silent):
    """A line for each thing that happened."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def note(self, text: str) -> None:
        self._console.print(f"  {text}", markup=False)

    def cell_begins(self, cell: Cell, number: int, of: int) -> None:
        self._console.print(f"[{number}/{of}] {_title(cell)}", markup=False)

    def trial_ends(self, seen: Measurement, verdict: Verdict) -> None:
        self._console.print(f"  {_trial_line(seen, verdict)}", markup=False)

    def cell_ends(self, result: Result) -> None:
        self._console.print(f"  = {result_line(result)}", markup=False)


class Screen(Lines):
    """What is going on now, redrawn in place; what is over scrolls by above it."""

    def __init__(self, console: Console, cells: int) -> None:
        super().__init__(console)
        self._cells, self._done, self._measured = cells, 0, 0
        self._began = time.monotonic()
        self._doing: Text = Text("starting")
        self._note = ""
        self._planned: PlannedTrial | None = None
        self._glimpses: list[TrialProgress] = []

    def note(self, text: str) -> None:
        self._note = text

    def cell_begins(self, cell: Cell, number: int, of: int) -> None:
        self._done, self._doing, self._note = (
            number - 1,
            Text(f"{number}/{of}  {_title(cell)}", style="bold"),
            "standing up",
        )
        self._planned, self._glimpses = None, []

    def trial_begins(self, planned: PlannedTrial) -> None:
        self._planned, self._glimpses, self._note = planned, [], ""

    def trial_progress(self, trial_progress: TrialProgress) -> None:
        recent = [earlier for earlier in self._glimpses if earlier.elapsed >= trial_progress.elapsed - RATE_SPAN]
        self._glimpses = [*recent, trial_progress]

    def cell_ends(self, result: Result) -> None:
        self._measured += 1
        self._done += 1
        super().cell_ends(result)

    def __rich__(self) -> RenderableType:
        spent = time.monotonic() - self._began
        left = spent / self._measured * (self._cells - self._done) if self._measured else None
        head = Table.grid(padding=(0, 2))
        head.add_row(
            ProgressBar(total=self._cells, completed=self._done, width=30),
            f"{self._done} of {self._cells} cells",
            f"{seconds_text(round(spent))} so far",
            f"about {seconds_text(round(left))} left" if left is not None else "",
        )
        return Group(head, self._doing, Text(self._note, style="dim") if self._note else self._numbers())

    def _numbers(self) -> RenderableType:
        if self._planned is None or not self._glimpses:
            return Text("")
        planned, now = self._planned, self._glimpses[-1]
        begin = self._glimpses[0]
        span = max(1e-9, now.elapsed - begin.elapsed)
        table = Table.grid(padding=(0, 2))
        whole = planned.settle + planned.window
        table.add_row(
            f"trial {planned.number + 1} ({planned.purpose}), {now.phase}", f"{now.elapsed:.0f} of {whole:.0f} s"
        )
        for what in ("offered", "sent", "processed"):
            count, before = getattr(now, what), getattr(begin, what)
            table.add_row(
                what, f"{count:,}", rate_text(max(0.0, (count - before) / span)) if len(self._glimpses) > 1 else ""
            )
        table.add_row("backlog", f"{now.offered - now.processed:,}")
        return table


def result_line(result: Result) -> str:
    """A cell's result in a line."""
    if result.estimate_hz is None:
        return f"{result.status}: {result.reason}"
    sign, rate = ("≥ ", result.low_hz) if result.status == "lower-bound" else ("", result.estimate_hz)
    interval = f" [{rate_text(result.low_hz)} .. {rate_text(result.high_hz)}]"
    reason = f" ({result.reason})" if result.reason else ""
    effort = f"{result.trials} trials, {result.seconds:.0f} s"
    return f"{result.status}{reason}: {sign}{rate_text(rate)}{interval}, {effort}"


def _title(cell: Cell) -> str:
    return f"{cell.system}  {cell.size_text}  {seconds_text(cell.cpu_seconds)}"


def _trial_line(seen: Measurement, verdict: Verdict) -> str:
    why = f": {verdict.why}" if verdict.why else ""
    loss = f", {verdict.loss:.0%} left behind" if verdict.loss > 0.005 else ""
    return (
        f"{MARKS[verdict.word]} {rate_text(seen.planned.rate):>10}  {seen.planned.purpose:8} {verdict.word}{why}{loss}"
    )
