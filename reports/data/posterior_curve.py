"""What the trials of one cell say of its top rate: a curve over messages/s, made again from the journal with a flat prior."""

import math

import numpy as np
from msgspec import Struct

from bench.analysis.stability import assess_stability
from bench.config.scenario import Search
from bench.search.posterior import Observation, Posterior, Prior
from bench.units import rate_text
from reports.data.derived import rate_of
from reports.data.run_data import CellData, JudgedTrial
from reports.figures.svg_timeline import Mark, path_of

WIDTH, HEIGHT = 600, 110
FLAT = 5.0
"""Standard deviation of the prior's logarithm: it prefers nothing."""
POINTS = 120
BACKLOG = ("backlog grew", "the source pushed back", "did not drain")


class Belief(Struct, frozen=True):
    """A curve in units of its drawing, ticks, the 95 % interval as places, and where trials were made."""

    curve: str
    ticks: tuple[Mark, ...]
    interval: tuple[int, int]
    sustained: tuple[int, ...]
    overloaded: tuple[int, ...]


def belief_of(known: CellData, search: Search) -> Belief | None:
    """The belief about a cell's top rate; None when it has no rate, or no trial that tells anything."""
    rate = rate_of(known.result)
    trials = [
        one
        for one in known.trials
        if one.verdict.word != "invalid" and one.seen.planned.purpose != "warm-up" and one.seen.series.at
    ]
    if not rate or not trials:
        return None
    prior = Prior(rate, FLAT, float(search.lowest), max(float(search.highest), rate))
    posterior = Posterior.of(prior, [_observation(one) for one in trials])
    low, high = posterior.quantiles(0.025, 0.975)
    rates = sorted(
        [low, high, *(one.seen.planned.rate for one in trials if low / 2 < one.seen.planned.rate < high * 2)]
    )
    begin, end = math.log(rates[0]) - 0.06, math.log(rates[-1]) + 0.06

    def place(hertz: float) -> int:
        return round(WIDTH * (math.log(hertz) - begin) / (end - begin))

    def places(word: str) -> tuple[int, ...]:
        found = (place(one.seen.planned.rate) for one in trials if one.verdict.word == word)
        return tuple(x for x in found if 0 <= x <= WIDTH)

    curve = _curve(posterior, begin, end)
    ticks = tuple(Mark(place(hertz), rate_text(hertz)) for hertz in np.exp(np.linspace(begin + 0.03, end - 0.03, 5)))
    return Belief(curve, ticks, (place(low), place(high)), places("sustained"), places("overloaded"))


def _curve(posterior: Posterior, begin: float, end: float) -> str:
    weights = np.exp(posterior.weights - posterior.weights.max()).sum(axis=0)
    at = np.linspace(begin, end, POINTS)
    heights = np.interp(at, posterior.thetas, weights, left=0.0, right=0.0)
    top = float(heights.max()) or 1.0
    xs = [WIDTH * n / (POINTS - 1) for n in range(POINTS)]
    return path_of(xs, [HEIGHT * (1 - float(height) / top) for height in heights])


def _observation(judged: JudgedTrial) -> Observation:
    """A trial as an observation, by the rules of the two-counter search."""
    seen, verdict = judged.seen, judged.verdict
    stability, rate = assess_stability(seen), seen.planned.rate
    seconds = max(1.0, stability.seconds)
    if verdict.word == "sustained":
        return Observation("at least", rate, seconds)
    if verdict.why in BACKLOG and 0 < stability.loss < 1 and seen.ended == "complete":
        return Observation(
            "estimate", rate * (1 - stability.loss), seconds, stability.slice_rates, stability.slice_seconds
        )
    return Observation("at most", rate, seconds)
