"""The display of a run while it goes on: live in a terminal, plain lines elsewhere, or nothing."""

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

from bench.elasticity.policy_run import Decision
from bench.model.measurement import REASONS, PlannedTrial, Result
from bench.runner.progress import (
    CellFinished,
    CellStarted,
    IntervalEnded,
    Note,
    Notify,
    PolicyEnded,
    ProgressEvent,
    RateWindow,
    TrialFinished,
    TrialProgress,
    TrialStarted,
)
from bench.units import rate_range_text, rate_text, seconds_text

MARKS = {"sustained": "✓", "overloaded": "✗", "invalid": "?"}
RATE_SPAN_S = 1.0
"""Over which the rates of the display are taken."""


@contextmanager
def terminal(cells: int, folder: Path, *, quiet: bool) -> Iterator[Notify]:
    """Yield the listener that suits where the output goes."""
    console = Console(file=sys.stderr, highlight=False)
    if quiet:
        yield ignore
        return
    console.print(f"run folder: {folder}")
    if not console.is_terminal:
        yield Lines(console)
        return
    screen = Screen(console, cells)
    with Live(screen, console=console, refresh_per_second=4, transient=True):
        yield screen


def ignore(_event: ProgressEvent) -> None:
    """Print nothing."""


class Lines:
    """A listener that prints a line for each thing that happened."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, event: ProgressEvent) -> None:
        """Take in an event."""
        match event:
            case Note():
                self._print(f"  {event.text}")
            case CellStarted():
                self._print(f"[{event.number}/{event.total}] {_title(event)}{_visit_text(event)}")
            case IntervalEnded():
                self._print(f"  {decision_line(event.decision)}")
            case PolicyEnded():
                self._print(f"  = {end_line(event)}")
            case TrialFinished():
                self._print(f"  {_trial_line(event)}")
            case CellFinished():
                self._print(f"  = {result_line(event.result)}{_change_text(event)}")
            case _:
                pass

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=not self._console.is_terminal)  # a line is searched for


class Screen:
    """A listener that redraws what is going on now in place; what is over scrolls by above it."""

    def __init__(self, console: Console, cells: int) -> None:
        self._lines = Lines(console)
        self._cells, self._done, self._measured = cells, 0, 0
        self._began = time.monotonic()
        self._total_s: float | None = None
        self._end = 0.0
        self._title: Text = Text("starting")
        self._note = ""
        self._planned: PlannedTrial | None = None
        self._rates = RateWindow(RATE_SPAN_S)

    def __call__(self, event: ProgressEvent) -> None:
        """Take in an event."""
        match event:
            case Note():
                self._note = event.text
            case CellStarted():
                self._done, self._note, self._planned = event.done, "deploying", None
                self._title = Text(f"{event.number}/{event.total}  {_title(event)}{_visit_text(event)}", style="bold")
                self._total_s, self._end = event.total_s, time.monotonic() + (event.left_s or 0.0)
                self._rates.clear()
            case TrialStarted():
                self._planned, self._note = event.planned, ""
                self._rates.clear()
            case TrialProgress():
                self._rates.add(event)
            case TrialFinished() | IntervalEnded():
                self._lines(event)
            case PolicyEnded():
                self._measured, self._done = self._measured + 1, self._done + 1
                self._lines(event)
            case CellFinished():
                self._measured += event.earlier is None
                self._done += event.earlier is None
                self._lines(event)

    def __rich__(self) -> RenderableType:
        spent = time.monotonic() - self._began
        bar, left = ProgressBar(total=self._cells, completed=self._done, width=30), ""
        if self._total_s is not None:
            rest = max(0.0, self._end - time.monotonic())
            bar = ProgressBar(total=self._total_s, completed=self._total_s - rest, width=30)
            left = f"{seconds_text(round(rest))} of {seconds_text(round(self._total_s))} left"
        elif self._measured:
            left = f"about {seconds_text(round(spent / self._measured * (self._cells - self._done)))} left"
        head = Table.grid(padding=(0, 2))
        head.add_row(bar, f"{self._done} of {self._cells} cells", f"{seconds_text(round(spent))} so far", left)
        return Group(head, self._title, Text(self._note, style="dim") if self._note else self._counters())

    def _counters(self) -> RenderableType:
        planned, now = self._planned, self._rates.last
        if planned is None or now is None:
            return Text("")
        table = Table.grid(padding=(0, 2))
        whole = planned.settle + planned.window
        table.add_row(
            f"trial {planned.number + 1} ({planned.purpose}), {now.phase}", f"{now.elapsed:.0f} of {whole:.0f} s"
        )
        for counter in ("offered", "sent", "processed"):
            rate = self._rates.rate(counter)
            table.add_row(counter, f"{getattr(now, counter):,}", rate_text(rate) if rate is not None else "")
        table.add_row("backlog", f"{now.offered - now.processed:,}")
        return table


def result_line(result: Result) -> str:
    """Return a cell's result in a line."""
    reason = f" ({REASONS.get(result.reason, result.reason)})" if result.reason else ""
    rates = {"lower-bound": f"≥ {rate_text(result.low_hz)}", "upper-bound": f"≤ {rate_text(result.high_hz)}"}
    if result.status not in rates and result.estimate_hz is None:
        return f"{result.status}{reason}"
    interval = ""
    if result.low_hz is not None and result.high_hz is not None:
        word = "bracket " if result.interval == "bracket" else ""
        interval = f" {word}[{rate_range_text(result.low_hz, result.high_hz)}]"
    grow = f", {rate_text(result.growing_hz)} if batches may grow" if result.growing_hz is not None else ""
    wide = ", wider than asked" if result.precision_reached is False else ""
    rate = rates.get(result.status, rate_text(result.estimate_hz))
    effort = f"{result.trials} trials, {result.seconds:.0f} s"
    return f"{result.status}{reason}: {rate}{interval}{wide}{grow}, {effort}"


def _visit_text(event: CellStarted) -> str:
    """Return which visit of the cell it is, from the second on, with how many senders, and the time that is left."""
    visit = f"visit {event.visit}" if event.visit > 1 else ""
    senders = f"{event.workers} senders" if event.visit > 1 and event.workers > 1 else ""
    left = f"{seconds_text(round(max(0.0, event.left_s)))} left" if event.left_s is not None else ""
    texts = ", ".join(text for text in (visit, senders, left) if text)
    return f"  ({texts})" if texts else ""


def _change_text(event: CellFinished) -> str:
    """Return the interval that a new result replaces."""
    earlier, now = event.earlier, event.result
    if earlier is None or (earlier.low_hz, earlier.high_hz, earlier.status) == (now.low_hz, now.high_hz, now.status):
        return ""
    if earlier.low_hz is None and earlier.high_hz is None:
        return f"; was {earlier.status}"
    return f"; was [{rate_range_text(earlier.low_hz, earlier.high_hz)}]"


def decision_line(decision: Decision) -> str:
    """Return what a policy decided at the end of an interval."""
    sample, reason = decision.sample, decision.plan.reason
    offered, taken = rate_text(sum(sample.offered.values())), rate_text(sum(sample.taken.values()))
    workers = str(decision.instances)
    if decision.is_change:
        workers += f" → {sum(decision.plan.parallelism.values())}"
    waiting = f"{sum(sample.backlog.values()):.0f} wait"
    return f"{seconds_text(sample.at):>8}  {offered} offered, {taken} taken, {waiting}; {workers} workers: {reason}"


def end_line(event: PolicyEnded) -> str:
    """Return the end of a policy's run in a line."""
    seen = event.measurement
    if seen is None:
        return f"{event.record.what}: {event.record.reason}" if event.record.what != "end" else event.record.reason
    drained = "" if seen.drained else ", not drained"
    again = f", {seen.processed_again} processed again after a restart" if seen.processed_again else ""
    counts = f"{seen.sent} sent, {seen.lost} lost, {seen.duplicated} processed more than once{again}{drained}"
    return f"{event.record.reason or 'complete'}: {counts}"


def _title(event: CellStarted) -> str:
    cell, policy = event.cell, f"  {event.policy}" if event.policy else ""
    return f"{cell.system}  {cell.size_text}  {seconds_text(cell.cpu_seconds)}{policy}"


def _trial_line(event: TrialFinished) -> str:
    planned, verdict = event.measurement.planned, event.verdict
    why = f": {verdict.why}" if verdict.why else ""
    loss = f", {verdict.loss:.0%} left behind" if verdict.loss > 0.005 else ""
    return f"{MARKS[verdict.word]} {rate_text(planned.rate):>10}  {planned.purpose:8} {verdict.word}{why}{loss}"
