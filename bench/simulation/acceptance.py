"""Acceptance criteria of a search strategy, and the summary of its searches that they apply to; plain data."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from bench.simulation.cases import Adversary
from bench.simulation.driver import SearchOutcome

MAX_MEDIAN_ERROR = 0.015
MAX_SPREAD, MAX_SPREAD_NOISY = 0.07, 0.09
"""Largest absolute error at the 5 % and 95 % quantiles; S6 has the second one."""
MIN_COVERAGE = 0.90
"""Least share of intervals that contain the truth; they are nominal 95 % intervals."""
MAX_ABOVE = 0.10
"""Largest share of confirmed rates above the truth."""
MIN_MEASURED = 0.95
"""Least share of searches with the status "measured"."""
TIMED_CASES = ("S1 ", "S2 ", "S3 ", "S4 ")
"""Beginnings of the names of the cases that MAX_SECONDS applies to."""
MAX_SECONDS = 460.0
"""Largest mean duration of a search in seconds of the system."""
MIN_WITHIN, WITHIN = 0.98, 0.05
"""Least share of errors below WITHIN, for systems of random capacity."""
MIN_SAVED = 0.30
"""Least share of the time that hints from neighbours save."""


class CaseSummary(Struct, frozen=True):
    """The statistics of all searches of one case.

    Errors are relative errors of the estimate (5 %, 50 % and 95 % quantiles). Shares are between 0 and 1. None: no
    search gave a value.
    """

    case: str
    runs: int
    low_error: float | None
    error: float | None
    high_error: float | None
    within: float
    """share of the runs with an error below WITHIN"""
    coverage: float
    """share of the runs whose interval contains the truth"""
    width: float | None
    """median of high / low - 1 of the intervals"""
    seconds: float
    """mean"""
    trials: float
    """mean"""
    confirmed: float | None
    """median of confirmed rate / truth"""
    above: float
    """share of the runs whose confirmed rate is above the truth"""
    zeros: int
    """runs whose estimate is zero or missing"""
    over_budget: int
    unfinished: int
    statuses: dict[str, int]


class Criterion(Struct, frozen=True):
    """An acceptance criterion of one case: `value` must be at most, or at least, `limit`."""

    case: str
    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def passed(self) -> bool:
        """True if the value meets the limit."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def summarise(outcomes: Sequence[SearchOutcome]) -> CaseSummary:
    """Return the statistics of the searches of one case."""
    errors = np.array([o.error for o in outcomes if o.error is not None])
    low, middle, high = (float(np.quantile(errors, share)) if len(errors) else None for share in (0.05, 0.5, 0.95))
    confirmed = [o.result.confirmed_hz / o.truth for o in outcomes if o.result.confirmed_hz is not None]
    pairs = [(o.result.low_hz, o.result.high_hz) for o in outcomes]
    widths = [high / low - 1 for low, high in pairs if low is not None and high is not None]
    runs = len(outcomes)
    return CaseSummary(
        outcomes[0].case, runs, low, middle, high,
        within=float((np.abs(errors) < WITHIN).sum()) / runs,
        coverage=sum(o.covered for o in outcomes) / runs,
        width=float(np.median(widths)) if widths else None,
        seconds=float(np.mean([o.seconds for o in outcomes])),
        trials=float(np.mean([o.result.trials for o in outcomes])),
        confirmed=float(np.median(confirmed)) if confirmed else None,
        above=sum(share > 1 for share in confirmed) / runs,
        zeros=sum(not o.result.estimate_hz for o in outcomes),
        over_budget=sum(o.seconds > o.budget for o in outcomes),
        unfinished=sum(not o.ended for o in outcomes),
        statuses=dict(Counter(o.result.status for o in outcomes)),
    )  # fmt: skip


def scenario_criteria(summary: CaseSummary) -> list[Criterion]:
    """Return the criteria of a scenario with a known capacity."""
    case = summary.case
    spread = MAX_SPREAD_NOISY if case.startswith("S6") else MAX_SPREAD
    errors = (summary.low_error, summary.error, summary.high_error)
    low, middle, high = (1.0 if error is None else abs(error) for error in errors)
    measured = summary.statuses.get("measured", 0) / summary.runs
    criteria = [
        Criterion(case, "median error", middle, MAX_MEDIAN_ERROR),
        Criterion(case, "5-95 % of errors", max(low, high), spread),
        Criterion(case, "coverage", summary.coverage, MIN_COVERAGE, at_least=True),
        Criterion(case, "no estimate", summary.zeros, 0),
        Criterion(case, "confirmed above truth", summary.above, MAX_ABOVE),
        Criterion(case, "measured", measured, MIN_MEASURED, at_least=True),
        *_ending_criteria(summary),
    ]
    if case[:3] in TIMED_CASES:
        criteria.append(Criterion(case, "mean seconds", summary.seconds, MAX_SECONDS))
    return criteria


def neighbour_criteria(summary: CaseSummary) -> list[Criterion]:
    """Return the criteria of a scenario with a hint from a neighbour."""
    return [criterion for criterion in scenario_criteria(summary) if criterion.name != "mean seconds"]


def saving_criterion(with_hint: Sequence[CaseSummary], without: Sequence[CaseSummary]) -> Criterion:
    """Return the criterion of the time that hints save over the TIMED_CASES."""
    times = [sum(each.seconds for each in rows if each.case[:3] in TIMED_CASES) for rows in (with_hint, without)]
    return Criterion("S1-S4", "time saved by neighbours", 1 - times[0] / times[1], MIN_SAVED, at_least=True)


def family_criteria(summary: CaseSummary) -> list[Criterion]:
    """Return the criteria of systems of random capacity."""
    return [
        Criterion(summary.case, f"within {WITHIN:.0%}", summary.within, MIN_WITHIN, at_least=True),
        Criterion(summary.case, "coverage", summary.coverage, MIN_COVERAGE, at_least=True),
        Criterion(summary.case, "no estimate", summary.zeros, 0),
        *_ending_criteria(summary),
    ]


def low_budget_criteria(summary: CaseSummary) -> list[Criterion]:
    """Return the criteria of searches with half a minute each: intervals of any width that contain the truth."""
    return [
        Criterion(summary.case, "coverage", summary.coverage, MIN_COVERAGE, at_least=True),
        Criterion(summary.case, "no estimate", summary.zeros, 0),
        Criterion(summary.case, "confirmed above truth", summary.above, MAX_ABOVE),
        Criterion(summary.case, "did not end", summary.unfinished, 0),
    ]


def adversary_criteria(adversary: Adversary, outcomes: Sequence[SearchOutcome]) -> list[Criterion]:
    """Return the criteria of an adversary: a correct result in every run."""
    correct = sum(is_correct(adversary, outcome) for outcome in outcomes)
    return [
        Criterion(adversary.case.name, "correct results", correct / len(outcomes), 1.0, at_least=True),
        *_ending_criteria(summarise(outcomes)),
    ]


def is_correct(adversary: Adversary, outcome: SearchOutcome) -> bool:
    """Return True if status, reason and estimate of an outcome are those that the adversary requires."""
    result = outcome.result
    if result.status not in adversary.statuses or adversary.reason not in (None, result.reason):
        return False
    if result.status != "measured" and result.reason != "generator":
        return True
    truths = [outcome.truth * share for share in (1.0, adversary.second_capacity or 1.0)]
    estimate = result.estimate_hz or 0.0
    return any(adversary.min_estimate <= estimate / truth <= adversary.max_estimate for truth in truths)


def _ending_criteria(summary: CaseSummary) -> list[Criterion]:
    return [
        Criterion(summary.case, "over budget", summary.over_budget, 0),
        Criterion(summary.case, "did not end", summary.unfinished, 0),
    ]
