"""The posterior of a cell's maximum sustainable throughput, computed again from the journal as its search did."""

import math

import numpy as np
from msgspec import Struct

from bench.config.scenario import Scenario
from bench.model.measurement import Bound
from bench.model.search_inputs import SearchInputs
from bench.search.posterior import CapacityPosterior
from bench.search.problem import make_problem
from bench.search.two_counter import TwoCounter
from bench.units import rate_text
from reports.data.derived import rate_of
from reports.data.run_data import CellData, JudgedTrial
from reports.figures.svg_timeline import Tick, make_path

WIDTH, HEIGHT = 600, 110
"""Of the drawing, in units of the SVG's view box."""
POINTS = 120


class PosteriorCurve(Struct, frozen=True):
    """A density as an SVG path; ticks, the interval of the result (None for a bound) and rates of trials are
    positions in view box units.
    """

    curve: str
    ticks: tuple[Tick, ...]
    interval: tuple[int, int] | None
    sustained: tuple[int, ...]
    overloaded: tuple[int, ...]


def compute_posterior_curve(cell_data: CellData, scenario: Scenario) -> PosteriorCurve | None:
    """Return the posterior curve of a cell; None if it has no rate or no valid trial."""
    result = cell_data.result
    trials = [trial for trial in cell_data.trials if _is_informative(trial)]
    if result is None or not rate_of(result) or not trials:
        return None
    posterior = _compute_posterior(cell_data, scenario)
    if posterior is None:
        return None
    low, high = posterior.quantiles(0.025, 0.975)
    tried = [trial.measurement.planned.rate for trial in trials]
    shown = sorted([low, high, *(rate for rate in tried if low / 2 < rate < high * 2)])
    begin, end = math.log(shown[0]) - 0.06, math.log(shown[-1]) + 0.06

    def position(hz: float) -> int:
        return round(WIDTH * (math.log(hz) - begin) / (end - begin))

    def positions(word: str) -> tuple[int, ...]:
        every = (position(trial.measurement.planned.rate) for trial in trials if trial.verdict.word == word)
        return tuple(x for x in every if 0 <= x <= WIDTH)

    curve = _make_curve(posterior, begin, end)
    ticks = tuple(Tick(position(hz), rate_text(hz)) for hz in np.exp(np.linspace(begin + 0.03, end - 0.03, 5)))
    interval = _clip(position(result.low_hz), position(result.high_hz)) if result.low_hz and result.high_hz else None
    return PosteriorCurve(curve, ticks, interval, positions("sustained"), positions("overloaded"))


def _compute_posterior(cell_data: CellData, scenario: Scenario) -> CapacityPosterior | None:
    """Return the posterior of the two-counter search after a cell's trials; None if they show nothing.

    With the inputs that the run recorded for the cell.
    """
    result, inputs = cell_data.result, cell_data.inputs or SearchInputs(cores=1, budget_s=0.0)
    bound = Bound(result.bound or "cpu", result.bound_hz) if result is not None and result.bound_hz else None
    interval = max(trial.measurement.batch_interval for trial in cell_data.trials)
    problem = make_problem(cell_data.cell, scenario, inputs, batch_interval=interval, bound=bound, cores=inputs.cores)
    search = TwoCounter(problem)
    for place, trial in enumerate(cell_data.trials):
        is_given = trial.verdict.word != "invalid" or place >= inputs.ignored
        if is_given and trial.measurement.series.at:
            search = search.after(trial.measurement, trial.verdict)
    return search.evidence.posterior if search.evidence.known else None


def _clip(begin: int, end: int) -> tuple[int, int]:
    """Return the part of an interval that is within the drawing."""
    return max(0, min(begin, WIDTH)), max(0, min(end, WIDTH))


def _is_informative(trial: JudgedTrial) -> bool:
    measurement = trial.measurement
    return bool(trial.verdict.word != "invalid" and measurement.planned.purpose != "warm-up" and measurement.series.at)


def _make_curve(posterior: CapacityPosterior, begin: float, end: float) -> str:
    at = np.linspace(begin, end, POINTS)
    heights = np.interp(at, posterior.thetas, posterior.mass, left=0.0, right=0.0)
    top = float(heights.max()) or 1.0
    xs = [WIDTH * n / (POINTS - 1) for n in range(POINTS)]
    return make_path(xs, [HEIGHT * (1 - float(height) / top) for height in heights])
