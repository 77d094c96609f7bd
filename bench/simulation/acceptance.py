"""What the outcomes of many searches come to, and the gates that they must pass; plain data."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from bench.simulation.cases import Adversary
from bench.simulation.driver import Outcome

MAX_MEDIAN_ERROR = 0.015
MAX_SPREAD, MAX_SPREAD_NOISY = 0.07, 0.09
MIN_COVERAGE = 0.90
MAX_ABOVE = 0.10
MIN_MEASURED = 0.95
FAST = ("S1 ", "S2 ", "S3 ", "S4 ")
MAX_SECONDS = 460.0
MIN_WITHIN, WITHIN = 0.98, 0.05
MIN_SAVED = 0.30
"""How much of the time neighbours save."""


class Row(Struct, frozen=True):
    """One line of the table; shares, not per cent, and None where no search gave that figure."""

    case: str
    runs: int
    low_error: float | None
    error: float | None
    high_error: float | None
    within: float
    """share of the runs whose error is below WITHIN"""
    coverage: float
    width: float | None
    seconds: float
    trials: float
    confirmed: float | None
    """median, as a share of the truth"""
    above: float
    """share of the runs whose confirmed rate is above the truth"""
    zeros: int
    over_budget: int
    unfinished: int
    statuses: dict[str, int]


class Criterion(Struct, frozen=True):
    """A demand on one case: `value` must be at most, or at least, `limit`."""

    case: str
    name: str
    value: float
    limit: float
    least: bool = False

    @property
    def passed(self) -> bool:
        return self.value >= self.limit if self.least else self.value <= self.limit


def row_of(outcomes: Sequence[Outcome]) -> Row:
    """The line of the table for the runs of one case."""
    errors = np.array([o.error for o in outcomes if o.error is not None])
    low, middle, high = (float(np.quantile(errors, share)) if len(errors) else None for share in (0.05, 0.5, 0.95))
    confirmed = [o.result.confirmed_hz / o.truth for o in outcomes if o.result.confirmed_hz is not None]
    pairs = [(o.result.low_hz, o.result.high_hz) for o in outcomes]
    widths = [high / low - 1 for low, high in pairs if low is not None and high is not None]
    runs = len(outcomes)
    return Row(
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


def scenario_gates(row: Row) -> list[Criterion]:
    """What is asked of a scenario with a known ceiling."""
    spread = MAX_SPREAD_NOISY if row.case.startswith("S6") else MAX_SPREAD
    low, middle, high = (1.0 if error is None else abs(error) for error in (row.low_error, row.error, row.high_error))
    gates = [
        Criterion(row.case, "median error", middle, MAX_MEDIAN_ERROR),
        Criterion(row.case, "5-95 % of errors", max(low, high), spread),
        Criterion(row.case, "coverage", row.coverage, MIN_COVERAGE, least=True),
        Criterion(row.case, "stuck at zero", row.zeros, 0),
        Criterion(row.case, "confirmed above truth", row.above, MAX_ABOVE),
        Criterion(row.case, "measured", row.statuses.get("measured", 0) / row.runs, MIN_MEASURED, least=True),
        *_ending_gates(row),
    ]
    return [*gates, Criterion(row.case, "mean seconds", row.seconds, MAX_SECONDS)] if row.case[:3] in FAST else gates


def neighbour_gates(row: Row) -> list[Criterion]:
    """What is asked of a scenario whose neighbour is known."""
    return [gate for gate in scenario_gates(row) if gate.name != "mean seconds"]


def saving_gate(with_hint: Sequence[Row], without: Sequence[Row]) -> Criterion:
    """What neighbours must save over the continuous systems and those with short batches."""
    times = [sum(row.seconds for row in rows if row.case[:3] in FAST) for rows in (with_hint, without)]
    return Criterion("S1-S4", "time saved by neighbours", 1 - times[0] / times[1], MIN_SAVED, least=True)


def family_gates(row: Row) -> list[Criterion]:
    """What is asked of systems with random ceilings."""
    return [
        Criterion(row.case, f"within {WITHIN:.0%}", row.within, MIN_WITHIN, least=True),
        Criterion(row.case, "coverage", row.coverage, MIN_COVERAGE, least=True),
        Criterion(row.case, "stuck at zero", row.zeros, 0),
        *_ending_gates(row),
    ]


def hasty_gates(row: Row) -> list[Criterion]:
    """What is asked of systems that are given half a minute each: an interval that holds, however wide."""
    return [
        Criterion(row.case, "coverage", row.coverage, MIN_COVERAGE, least=True),
        Criterion(row.case, "stuck at zero", row.zeros, 0),
        Criterion(row.case, "confirmed above truth", row.above, MAX_ABOVE),
        Criterion(row.case, "never ended", row.unfinished, 0),
    ]


def adversary_gates(adversary: Adversary, outcomes: Sequence[Outcome]) -> list[Criterion]:
    """What is asked of a case that tries to fool the search: right every time."""
    right = sum(is_right(adversary, outcome) for outcome in outcomes)
    return [
        Criterion(adversary.case.name, "right", right / len(outcomes), 1.0, least=True),
        *_ending_gates(row_of(outcomes)),
    ]


def is_right(adversary: Adversary, outcome: Outcome) -> bool:
    """Whether the status, the reason and the estimate are what they must be."""
    result = outcome.result
    if result.status not in adversary.statuses or adversary.reason not in (None, result.reason):
        return False
    if result.status != "measured" and result.reason != "generator":
        return True
    truths = [outcome.truth * share for share in (1.0, adversary.also or 1.0)]
    return any(adversary.least <= (result.estimate_hz or 0.0) / truth <= adversary.most for truth in truths)


def _ending_gates(row: Row) -> list[Criterion]:
    return [
        Criterion(row.case, "over budget", row.over_budget, 0),
        Criterion(row.case, "never ended", row.unfinished, 0),
    ]
