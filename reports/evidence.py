"""What a run's folder says: every cell with its result, if it has one, and with its trials, judged again."""

import re
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from bench.errors import UsageError
from bench.measurement import Measurement, Result
from bench.scenario import Cell
from bench.store import RunRecord, cell_of, read_results, read_run, read_trials
from bench.units import seconds_text, size_text
from bench.verdict import Rules, Verdict, judge


class Judged(Struct, frozen=True):
    """A trial and its verdict."""

    seen: Measurement
    verdict: Verdict


class Known(Struct, frozen=True):
    """What is known of one cell; `result` is None until its search has ended."""

    cell: Cell
    result: Result | None
    trials: tuple[Judged, ...]

    @property
    def anchor(self) -> str:
        """The name of its section in the page."""
        cell = self.cell
        return re.sub(r"[^A-Za-z0-9-]+", "-", f"cell-{cell.system}-{cell.message_bytes}B-{cell.cpu_seconds * 1e6:.0f}us")

    @property
    def point(self) -> str:
        """Its size and cost, as people read them."""
        return f"{size_text(self.cell.message_bytes)}, {seconds_text(self.cell.cpu_seconds)}"

    @property
    def deciding(self) -> Judged | None:
        """The trial that its answer rests on: the one that confirmed it, else the fastest sustained one, else the last one."""
        confirmed = self.result.confirmed_hz if self.result is not None else None
        sustained = [one for one in self.trials if one.verdict.word == "sustained" and one.seen.planned.purpose != "warm-up"]
        behind = [one for one in sustained if one.seen.planned.purpose == "confirm" and one.seen.planned.rate == confirmed]
        fastest = sorted(sustained, key=lambda one: one.seen.planned.rate)[-1:]
        return [*self.trials[-1:], *fastest, *behind][-1] if self.trials else None


class Evidence(Struct, frozen=True, dict=True):
    """A whole run: its folder, its record, and every cell of its scenario in the scenario's order."""

    folder: Path
    record: RunRecord
    cells: tuple[Known, ...]

    @property
    def title(self) -> str:
        return self.record.scenario.title or self.record.scenario.name

    @cached_property
    def systems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(known.cell.system for known in self.cells))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(sorted({known.cell.message_bytes for known in self.cells}))

    @cached_property
    def costs(self) -> tuple[float, ...]:
        return tuple(sorted({known.cell.cpu_seconds for known in self.cells}))

    @property
    def missing(self) -> tuple[Known, ...]:
        """The cells that have no result yet."""
        return tuple(known for known in self.cells if known.result is None)

    def of_system(self, system: str) -> tuple[Known, ...]:
        return tuple(known for known in self.cells if known.cell.system == system)

    def at(self, size: int, cost: float) -> tuple[Known, ...]:
        """What is known of every system at one point of the grid."""
        return tuple(self._points.get((size, cost), ()))

    @cached_property
    def _points(self) -> dict[tuple[int, float], list[Known]]:
        found: dict[tuple[int, float], list[Known]] = {}
        for known in self.cells:
            found.setdefault((known.cell.message_bytes, known.cell.cpu_seconds), []).append(known)
        return found


def read_evidence(run: Path) -> Evidence:
    """What the folder of a run says; UsageError when it is none, or when nothing was measured in it yet."""
    record = read_run(run)
    results = {cell_of(result): result for result in read_results(run)}
    rules = Rules(record.scenario.objectives, float(record.scenario.search.precision))
    trials: dict[Cell, list[Judged]] = {}
    for entry in read_trials(run):
        trials.setdefault(entry.cell, []).append(Judged(entry.measurement, judge(entry.measurement, rules)))
    if not results and not trials:
        raise UsageError(f"{run}: has no trial and no result yet; go on with `bench run --resume {run}`")
    cells = dict.fromkeys((*record.scenario.cells(), *results, *trials))
    return Evidence(run, record, tuple(Known(cell, results.get(cell), tuple(trials.get(cell, ()))) for cell in cells))
