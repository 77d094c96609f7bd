"""Searches by trials of a fixed length, RFC 2544 and MLRsearch: their trials, highest rate and end."""

from collections.abc import Sequence

from bench.analysis.foreign_work import DEATHS
from bench.analysis.verdict import GENERATOR_LATE
from bench.model.measurement import PlannedTrial
from bench.search.problem import SearchProblem, Step

SETTLE_S = 1.0
MAX_INVALID, MAX_DEATHS = 3, 2
GENERATOR_SHARE = 0.95
"""Highest planned rate, as a share of the generator's limit."""


def plan_trial(problem: SearchProblem, steps: Sequence[Step], rate: float, window: float) -> PlannedTrial | None:
    """Return the next trial, at `rate` messages/s for `window` seconds; None if the budget is too small for it."""
    interval = problem.batch_interval
    settle, drain = max(SETTLE_S, 2 * interval), float(problem.timing.drain) + 2 * interval
    spent = sum(step.measurement.seconds for step in steps)
    if spent + settle + window + drain > problem.search.budget:
        return None
    return PlannedTrial(len(steps), float(rate), settle, window, "search")


def highest_rate(problem: SearchProblem) -> float:
    """Return the highest planned rate in messages/s: that of the problem, or what the generator can offer."""
    if problem.generator_hz is None:
        return problem.highest
    return min(problem.highest, max(GENERATOR_SHARE * problem.generator_hz, float(problem.search.lowest)))


def gives_up(steps: Sequence[Step]) -> bool:
    """Return True after too many deaths of the framework or the source, or too many invalid trials.

    Trials in which the generator was late are no invalid ones: they bound the rate.
    """
    deaths = sum(step.measurement.ended in DEATHS for step in steps)
    invalid = sum(step.verdict.word == "invalid" and step.verdict.why != GENERATOR_LATE for step in steps)
    return deaths >= MAX_DEATHS or invalid >= MAX_INVALID
