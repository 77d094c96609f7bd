"""Acceptance criteria of a search strategy, and the summary of its searches that they apply to; plain data."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from bench.simulation.cases import Adversary
from bench.simulation.driver import SearchOutcome
from bench.simulation.engines import LONG_BUDGET_S, EngineCase
from bench.simulation.maps import MapOutcome

MAX_MEDIAN_ERROR = 0.015
MAX_SPREAD, MAX_SPREAD_NOISY = 0.07, 0.09
"""Largest absolute error at the 5 % and 95 % quantiles; S6 has the second one."""
MIN_COVERAGE = 0.93
"""Least share of intervals that contain the truth; they are nominal 95 % intervals."""
MAX_ABOVE = 0.10
"""Largest share of confirmed rates above the truth."""
MAX_WRONG, WRONG_FACTOR = 0.002, 1.5
"""Largest share of intervals that lie wholly beyond the truth by more than the factor."""
CASE_LEVEL, POOLED_LEVEL = 0.001, 0.01
"""A share of few runs fails only if a search that just meets its limit would do as badly with less than this
probability (one-sided binomial test): the first for each of the about hundred cases, the second for all together."""
MIN_MEASURED = 0.95
"""Least share of searches with the status "measured"."""
TIMED_CASES = ("S1 ", "S2 ", "S3 ", "S4 ")
"""Beginnings of the names of the cases that MAX_SECONDS applies to."""
MAX_SECONDS = 400.0
"""Largest mean duration of a search in seconds of the system."""
HALF_WIDTHS = {
    (75.0, "continuous"): 0.08,
    (75.0, "batches"): 0.10,
    (75.0, "counters"): 0.10,
    (25.0, "continuous"): 0.15,
    (25.0, "batches"): 0.20,
}
"""Largest median half-width of the interval, in ln(rate), for a budget and a kind of progress; in 25 s of the searches
with a neighbour's estimate: without one, the first trials of batches only look for the range."""
MAX_HINTED_BUDGET_S = 30.0
"""Up to this budget the width is required only of the searches with a neighbour's estimate."""
MAX_BOUNDED = 0.05
"""Largest share of searches of batches in a short budget that end with an upper bound and no estimate."""
MAX_MEAN_BUDGET, MAX_BUDGET, MIN_WITHIN_BUDGET = 1.1, 1.5, 0.95
"""Largest mean duration as a share of a short budget; largest duration of 95 % of the searches."""
MAX_WRONG_MAPS = 0.05
"""Largest share of maps in which any point is called wrongly."""
MAX_CHANGED_MAPS, MIN_ORDERED = 0.05, 0.99
"""Largest share of maps of equal cells that show a change; least share of near cells ordered right or called open."""


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
    coverage: float
    """share of the runs whose interval contains the truth"""
    half_width: float | None
    """median of half of the interval's width in ln(rate); None if most intervals are open"""
    hinted_half_width: float | None
    """the same of the searches with a neighbour's estimate"""
    wrong: int
    """intervals that lie wholly beyond the truth by more than WRONG_FACTOR"""
    seconds: float
    """mean"""
    budget: float
    trials: float
    """mean"""
    confirmed: float | None
    """median of confirmed rate / truth"""
    above: float
    """share of the runs whose confirmed rate is above the truth"""
    zeros: int
    """runs whose estimate is zero or missing"""
    bounded: int
    """those of them that ended with an upper bound, which is true"""
    over_budget: int
    """runs that exceeded the budget by more than one trial"""
    far_over_budget: int
    """runs that took more than MAX_BUDGET times their budget"""
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
    runs = len(outcomes)
    return CaseSummary(
        outcomes[0].case, runs, low, middle, high,
        coverage=sum(o.covered for o in outcomes) / runs,
        half_width=_median_half_width(outcomes),
        hinted_half_width=_median_half_width([o for o in outcomes if o.hinted]),
        wrong=sum(_is_wrong(o) for o in outcomes),
        seconds=float(np.mean([o.seconds for o in outcomes])),
        budget=outcomes[0].budget,
        trials=float(np.mean([o.result.trials for o in outcomes])),
        confirmed=float(np.median(confirmed)) if confirmed else None,
        above=sum(share > 1 for share in confirmed) / runs,
        zeros=sum(not o.result.estimate_hz for o in outcomes),
        bounded=sum(not o.result.estimate_hz and o.result.status == "upper-bound" and o.covered for o in outcomes),
        over_budget=sum(o.seconds > o.budget + o.longest for o in outcomes),
        far_over_budget=sum(o.seconds > MAX_BUDGET * o.budget for o in outcomes),
        unfinished=sum(not o.ended for o in outcomes),
        statuses=dict(Counter(o.result.status for o in outcomes)),
    )  # fmt: skip


def scenario_criteria(summary: CaseSummary) -> list[Criterion]:
    """Return the criteria of a scenario with a known capacity and a long budget."""
    case = summary.case
    spread = MAX_SPREAD_NOISY if case.startswith("S6") else MAX_SPREAD
    errors = (summary.low_error, summary.error, summary.high_error)
    low, middle, high = (1.0 if error is None else abs(error) for error in errors)
    measured = summary.statuses.get("measured", 0) / summary.runs
    criteria = [
        Criterion(case, "median error", middle, MAX_MEDIAN_ERROR),
        Criterion(case, "5-95 % of errors", max(low, high), spread),
        _coverage_criterion(summary),
        Criterion(case, "no estimate", summary.zeros, 0),
        _above_criterion(summary),
        Criterion(case, "measured", measured, min_share(summary.runs, MIN_MEASURED), at_least=True),
        *_ending_criteria(summary),
    ]
    if case[:3] in TIMED_CASES:
        criteria.append(Criterion(case, "mean seconds", summary.seconds, MAX_SECONDS))
    return criteria


def engine_criteria(summary: CaseSummary, case: EngineCase) -> list[Criterion]:
    """Return the criteria of an engine with a budget."""
    criteria = [
        _coverage_criterion(summary),
        _above_criterion(summary),
        *_estimate_criteria(summary, case),
        *_ending_criteria(summary, short=case.budget < LONG_BUDGET_S),
    ]
    widest = HALF_WIDTHS.get((case.budget, case.engine.progress))
    if widest is not None and case.engine.traits.batch_interval <= 1.0:
        half = summary.half_width if case.budget > MAX_HINTED_BUDGET_S else summary.hinted_half_width
        criteria.append(Criterion(summary.case, "median half-width", math.inf if half is None else half, widest))
    return criteria


def pooled_criteria(budget: float, summaries: Sequence[CaseSummary]) -> list[Criterion]:
    """Return the criteria of all engines with one budget together."""
    runs, name = sum(each.runs for each in summaries), f"all engines, {budget:g} s"
    covered = sum(each.coverage * each.runs for each in summaries) / runs
    return [
        Criterion(name, "coverage", covered, min_share(runs, MIN_COVERAGE, POOLED_LEVEL), at_least=True),
        Criterion(
            name,
            f"wrong by more than {WRONG_FACTOR}",
            sum(each.wrong for each in summaries) / runs,
            max_share(runs, MAX_WRONG, POOLED_LEVEL),
        ),
    ]


def map_criteria(name: str, outcomes: Sequence[MapOutcome]) -> list[Criterion]:
    """Return the criteria of maps that were measured twice."""
    maps, cells = len(outcomes), sum(2 * each.cells for each in outcomes)
    pairs = max(1, sum(each.pairs for each in outcomes))
    changed = sum(each.changes > 0 for each in outcomes) / maps
    ordered = 1 - sum(each.misordered for each in outcomes) / pairs
    covered = sum(each.covered for each in outcomes) / cells
    wrong = sum(each.wrong_winners for each in outcomes) / (2 * maps)
    equals = max(1, sum(each.equals for each in outcomes))
    leads = sum(each.equal_leads for each in outcomes) / equals
    return [
        Criterion(name, "maps with a wrong winner", wrong, max_share(2 * maps, MAX_WRONG_MAPS, POOLED_LEVEL)),
        Criterion(name, "maps of equal systems with a leader", leads, max_share(equals, MAX_WRONG_MAPS, POOLED_LEVEL)),
        Criterion(name, "equal maps that show a change", changed, max_share(maps, MAX_CHANGED_MAPS, POOLED_LEVEL)),
        Criterion(name, "near cells ordered or open", ordered, MIN_ORDERED, at_least=True),
        Criterion(name, "coverage", covered, min_share(cells, MIN_COVERAGE, POOLED_LEVEL), at_least=True),
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


def min_share(runs: int, share: float, level: float = CASE_LEVEL) -> float:
    """Return the least share of `runs` that is not significantly below `share` (one-sided binomial test)."""
    cumulated, count = 0.0, 0
    while count < runs:
        cumulated += math.exp(
            math.lgamma(runs + 1) - math.lgamma(count + 1) - math.lgamma(runs - count + 1)
            + count * math.log(share) + (runs - count) * math.log1p(-share)
        )  # fmt: skip
        if cumulated > level:
            break
        count += 1
    return count / runs


def max_share(runs: int, share: float, level: float = CASE_LEVEL) -> float:
    """Return the largest share of `runs` that is not significantly above `share`."""
    return 1 - min_share(runs, 1 - share, level)


def _coverage_criterion(summary: CaseSummary) -> Criterion:
    return Criterion(summary.case, "coverage", summary.coverage, min_share(summary.runs, MIN_COVERAGE), at_least=True)


def _estimate_criteria(summary: CaseSummary, case: EngineCase) -> list[Criterion]:
    """Return the criteria of results without an estimate.

    A short budget may end before the first batch of a rate that is far too high. The upper bound that is left must be
    true, and seldom.
    """
    name, runs = summary.case, summary.runs
    if case.budget >= LONG_BUDGET_S or case.engine.traits.batch_interval == 0:
        return [Criterion(name, "no estimate", summary.zeros, 0)]
    return [
        Criterion(name, "no estimate and no true bound", summary.zeros - summary.bounded, 0),
        Criterion(name, "an upper bound alone", summary.bounded / runs, max_share(runs, MAX_BOUNDED)),
    ]


def _above_criterion(summary: CaseSummary) -> Criterion:
    return Criterion(summary.case, "confirmed above truth", summary.above, max_share(summary.runs, MAX_ABOVE))


def _ending_criteria(summary: CaseSummary, *, short: bool = False) -> list[Criterion]:
    case, unfinished = summary.case, Criterion(summary.case, "did not end", summary.unfinished, 0)
    if not short:
        return [Criterion(case, "over budget by more than a trial", summary.over_budget, 0), unfinished]
    far, runs = summary.far_over_budget / summary.runs, summary.runs
    return [
        Criterion(case, "mean seconds / budget", summary.seconds / summary.budget, MAX_MEAN_BUDGET),
        Criterion(case, f"over {MAX_BUDGET} x budget", far, max_share(runs, 1 - MIN_WITHIN_BUDGET)),
        unfinished,
    ]


def _median_half_width(outcomes: Sequence[SearchOutcome]) -> float | None:
    widths = [math.inf if o.half_width is None else o.half_width for o in outcomes]
    middle = float(np.median(widths)) if widths else math.inf
    return middle if middle < math.inf else None


def _is_wrong(outcome: SearchOutcome) -> bool:
    low, high = outcome.result.low_hz, outcome.result.high_hz
    return (low or 0.0) > WRONG_FACTOR * outcome.truth or (high or math.inf) < outcome.truth / WRONG_FACTOR
