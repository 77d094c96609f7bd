"""What a run's folder says: every cell with its result, if it has one, and with its trials, judged again."""

import re
from functools import cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.verdict import Rules, Verdict, judge
from bench.config.site import Site
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Measurement, Result
from bench.plugins.placement import place
from bench.storage.records import RunRecord
from bench.storage.run_folder import cell_of, read_results, read_run, read_trials
from bench.units import seconds_text


class MeanSize(int):
    """A size of the grid that is the mean of messages that differ in size; a map says so."""


class JudgedTrial(Struct, frozen=True):
    """A trial and its verdict."""

    seen: Measurement
    verdict: Verdict


class CellData(Struct, frozen=True):
    """What is known of one cell; `result` is None until its search has ended."""

    cell: Cell
    result: Result | None
    trials: tuple[JudgedTrial, ...]

    @property
    def anchor(self) -> str:
        """The name of its section in the page."""
        cell = self.cell
        return re.sub(
            r"[^A-Za-z0-9-]+", "-", f"cell-{cell.system}-{cell.message_bytes}B-{cell.cpu_seconds * 1e6:.0f}us"
        )

    @property
    def point(self) -> str:
        """Its size and cost, as people read them."""
        return f"{self.cell.size_text}, {seconds_text(self.cell.cpu_seconds)}"

    @property
    def deciding(self) -> JudgedTrial | None:
        """The trial that its answer rests on: the one that confirmed it, else the fastest sustained one, else the last one."""
        confirmed = self.result.confirmed_hz if self.result is not None else None
        sustained = [
            one for one in self.trials if one.verdict.word == "sustained" and one.seen.planned.purpose != "warm-up"
        ]
        behind = [
            one for one in sustained if one.seen.planned.purpose == "confirm" and one.seen.planned.rate == confirmed
        ]
        fastest = sorted(sustained, key=lambda one: one.seen.planned.rate)[-1:]
        return [*self.trials[-1:], *fastest, *behind][-1] if self.trials else None


class RunData(Struct, frozen=True, dict=True):
    """A whole run: its folder, its record, and every cell of its scenario in the scenario's order."""

    folder: Path
    record: RunRecord
    cells: tuple[CellData, ...]

    @property
    def title(self) -> str:
        return self.record.scenario.title or self.record.scenario.name

    @property
    def imported(self) -> bool:
        """Whether another tool has measured it: then nothing is known of how, nor whether anything was lost."""
        return "imported" in self.record.facts

    @cached_property
    def systems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(known.cell.system for known in self.cells))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        means = {known.cell.message_bytes for known in self.cells if known.cell.sizes is not None}
        found = sorted({known.cell.message_bytes for known in self.cells})
        return tuple(MeanSize(size) if size in means else size for size in found)

    @cached_property
    def costs(self) -> tuple[float, ...]:
        return tuple(sorted({known.cell.cpu_seconds for known in self.cells}))

    @property
    def missing(self) -> tuple[CellData, ...]:
        """The cells that have no result yet."""
        return tuple(known for known in self.cells if known.result is None)

    def of_system(self, system: str) -> tuple[CellData, ...]:
        return tuple(known for known in self.cells if known.cell.system == system)

    def at(self, size: int, cost: float) -> tuple[CellData, ...]:
        """What is known of every system at one point of the grid."""
        return tuple(self._points.get((size, cost), ()))

    @cached_property
    def _points(self) -> dict[tuple[int, float], list[CellData]]:
        found: dict[tuple[int, float], list[CellData]] = {}
        for known in self.cells:
            found.setdefault((known.cell.message_bytes, known.cell.cpu_seconds), []).append(known)
        return found


def read_run_data(run: Path) -> RunData:
    """What the folder of a run says; UsageError when it is none, or when nothing was measured in it yet."""
    record = read_run(run)
    results = {cell_of(result): _with_shares_of_here(result, record.site) for result in read_results(run)}
    rules = Rules(record.scenario.objectives, float(record.scenario.search.precision))
    trials: dict[Cell, list[JudgedTrial]] = {}
    for entry in read_trials(run):
        seen = _of_here(entry.measurement, entry.cell, record.site)
        trials.setdefault(entry.cell, []).append(JudgedTrial(seen, judge(entry.measurement, rules)))
    if not results and not trials:
        raise UsageError(f"{run}: has no trial and no result yet; go on with `bench run --resume {run}`")
    cells = dict.fromkeys((*record.scenario.cells(), *results, *trials))
    return RunData(run, record, tuple(CellData(cell, results.get(cell), tuple(trials.get(cell, ()))) for cell in cells))


def _elsewhere(framework: str, source: str, site: Site) -> set[str]:
    """The roles of a cell whose processes nobody sees from here: they stand at the site already, and only a client is here."""
    placement = place(framework, source, site, 1)
    remote = {"framework": placement.framework_remote, "source": placement.source_remote}
    return {role for role, is_remote in remote.items() if is_remote}


def _of_here(seen: Measurement, cell: Cell, site: Site) -> Measurement:
    """A trial without the accounts of what nobody saw: they are unknown, not nothing."""
    gone = _elsewhere(cell.framework, cell.source, site)
    if not gone:
        return seen
    cached_resource = {
        name: {role: value for role, value in getattr(seen, name).items() if role not in gone} for name in _BY_ROLE
    }
    return replace(seen, **cached_resource)


_BY_ROLE = ("cpu", "memory", "memory_slope", "usage")


def _with_shares_of_here(result: Result, site: Site) -> Result:
    gone = _elsewhere(result.framework, result.source, site)
    shares = {role: share for role, share in result.cpu_share.items() if role not in gone}
    return replace(result, cpu_share=shares) if gone else result
