"""The posterior of a cell's maximum sustainable throughput, computed again from the journal with a flat prior."""

import math

import numpy as np
from msgspec import Struct

from bench.analysis.capacity_reading import Reading, read_capacity
from bench.analysis.stability import assess_stability
from bench.config.scenario import Search
from bench.search.posterior import CapacityPosterior, CapacityPrior, capacity_posterior
from bench.units import rate_text
from reports.data.derived import rate_of
from reports.data.run_data import CellData, JudgedTrial
from reports.figures.svg_timeline import Tick, make_path

WIDTH, HEIGHT = 600, 110
"""Of the drawing, in units of the SVG's view box."""
FLAT_SD = 5.0
"""Standard deviation of the logarithm of the rate in the prior; so wide that the prior has no influence."""
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


def compute_posterior_curve(cell_data: CellData, search: Search) -> PosteriorCurve | None:
    """Return the posterior curve of a cell; None if it has no rate or no valid trial."""
    result = cell_data.result
    rate = rate_of(result)
    trials = [trial for trial in cell_data.trials if _is_informative(trial)]
    if result is None or not rate or not trials:
        return None
    readings = [reading for reading in map(_read, trials) if reading is not None]
    if not readings:
        return None
    rates = [reading.rate for reading in readings]
    prior = CapacityPrior(min(float(search.lowest), *rates) / 2, 8 * max(float(search.highest), *rates), rate, FLAT_SD)
    batches = any(trial.measurement.batch_interval > 0 for trial in trials)
    posterior = capacity_posterior(prior, readings, batches=batches)
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


def _read(trial: JudgedTrial) -> Reading | None:
    """Return the reading of a trial, by the rules of the two-counter search."""
    return read_capacity(trial.measurement, trial.verdict, assess_stability(trial.measurement))
