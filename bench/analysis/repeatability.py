"""Repeatability of runs of the same cells: the spread between runs against the width of the reported intervals.

Test of homogeneity: Cochran's Q (Cochran 1954, "The combination of estimates from different experiments", Biometrics
10, 101-129) on the logarithms of the rates, each estimate weighted by the inverse square of its reported standard
deviation. If the intervals are correct and the errors independent and normal, Q follows a chi-square law with runs - 1
degrees of freedom. A much larger Q shows that the intervals are too narrow, a much smaller one that they are too wide.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist, stdev
from typing import Literal

import numpy as np
from msgspec import Struct

from bench.analysis.intervals import Z
from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.units import seconds_text, size_text

MIN_RUNS = 3
Spread = Literal["as promised", "wider than promised", "narrower than promised"]
LEVEL = 0.05
"""Level of the test on each side: the chance that correct intervals are called too narrow, or too wide."""
_NORMAL = NormalDist()


class Agreement(Struct, frozen=True):
    """The test of one cell over several runs.

    `centre_hz`, in messages/s, is the weighted mean of the estimates. `spread` (between runs) and `promised` (root mean
    square of those that the 95 % intervals report) are standard deviations of ln(rate), that is, shares of the rate.
    """

    cell: Cell
    runs: int
    centre_hz: float
    spread: float
    promised: float
    holding: int
    """number of the intervals that contain the centre"""
    q: float
    """Cochran's Q"""
    p: float
    """probability of a Q at least this large if the intervals are correct"""

    @property
    def word(self) -> Spread:
        """The decision of the test, at LEVEL on each side."""
        return _judge_spread(self.p)

    @property
    def name(self) -> str:
        """The cell as text: system, message size, CPU cost."""
        return f"{self.cell.system}, {size_text(self.cell.message_bytes)}, {seconds_text(self.cell.cpu_seconds)}"

    def sentence(self) -> str:
        """Return the figures of the test and its decision as text."""
        return (
            f"{self.runs} runs: estimates spread by {100 * self.spread:.1f} %, their intervals promise"
            f" {100 * self.promised:.1f} % (standard deviations); {self.holding} of {self.runs} intervals contain the"
            " common mean."
            f" The spread is {self.word} (Q = {self.q:.1f}, p = {self.p:.2f})."
        )


def agreements(runs: Sequence[Sequence[Result]]) -> list[Agreement]:
    """Return the test of each cell that MIN_RUNS runs or more measured, in the order of the first run.

    Args:
        runs: The results of each run. Only estimates with a 95 % interval count: a bound has no estimate, and a bracket
            promises no spread.
    """
    by_cell: dict[Cell, list[Result]] = {}
    for results in runs:
        for result in results:
            if is_repeatable(result):
                by_cell.setdefault(result.cell, []).append(result)
    return [_test_cell(cell, results) for cell, results in by_cell.items() if len(results) >= MIN_RUNS]


def is_repeatable(result: Result) -> bool:
    """Return True if a result has an estimate and a 95 % interval."""
    ends = result.estimate_hz and result.low_hz and result.high_hz
    return result.status == "measured" and result.interval == "95 %" and bool(ends)


class RunFactors(Struct, frozen=True):
    """The factors by which all cells of a run together differ from those of the others, and what is left.

    A machine that is shared is not equally fast in each run; then the cells of a run are slower together.
    """

    factors: tuple[float, ...]
    """of each run; their logarithms add up to 0"""
    q: float
    """weighted sum of squares of what cells and runs do not explain"""
    p: float
    """probability of a Q at least this large if the intervals are correct"""

    def sentence(self) -> str:
        """Return the factors, and whether the spread is as promised without them."""
        factors = ", ".join(f"{factor:.2f}" for factor in self.factors)
        return (
            f"All cells together differ from run to run by the factors {factors}; without them the spread is"
            f" {_judge_spread(self.p)} (Q = {self.q:.1f}, p = {self.p:.2f})."
        )


def run_factors(runs: Sequence[Sequence[Result]]) -> RunFactors | None:
    """Return the factor of each run by weighted least squares on ln(rate), with an effect of each cell and each run.

    Only cells that every run measured with a 95 % interval count; None with fewer than two of them, or too few runs.
    """
    by_cell = [{result.cell: result for result in results if is_repeatable(result)} for results in runs]
    cells = [cell for cell in by_cell[0] if all(cell in of_run for of_run in by_cell)] if runs else []
    if len(runs) < MIN_RUNS or len(cells) < 2:
        return None
    logs = np.log([[of_run[cell].estimate_hz or 1.0 for of_run in by_cell] for cell in cells])
    weights = np.array([[_sd(of_run[cell]) ** -2 for of_run in by_cell] for cell in cells])
    of_cell = weights.sum(axis=1, keepdims=True)
    normal = np.diag(weights.sum(axis=0)) - weights.T @ (weights / of_cell)  # the effects of the cells are eliminated
    middle = (weights * logs).sum(axis=1, keepdims=True) / of_cell
    effects = np.linalg.lstsq(normal, (weights * (logs - middle)).sum(axis=0), rcond=None)[0]
    of_cells = (weights * (logs - effects)).sum(axis=1, keepdims=True) / of_cell
    q = float((weights * (logs - of_cells - effects) ** 2).sum())
    factors = np.exp(effects - effects.mean())
    return RunFactors(tuple(factors.tolist()), q, _chi_square_tail(q, (len(cells) - 1) * (len(runs) - 1)))


def overall_sentence(agreed: Sequence[Agreement]) -> str:
    """Return the decision over all cells together: the sum of their Q against its chi-square law; empty without any."""
    if not agreed:
        return ""
    q, freedom = sum(each.q for each in agreed), sum(each.runs - 1 for each in agreed)
    p = _chi_square_tail(q, freedom)
    wider = sum(each.word == "wider than promised" for each in agreed)
    cells = "1 cell" if len(agreed) == 1 else f"{len(agreed)} cells"
    are = "is" if wider == 1 else "are"
    return (
        f"Over {cells} together the spread between runs is {_judge_spread(p)} (Q = {q:.1f} with {freedom} degrees of"
        f" freedom, p = {p:.2f}); tested one by one, {wider} {are} wider than promised;"
        f" chance alone gives {LEVEL * len(agreed):.1f}."
    )


def _judge_spread(p: float) -> Spread:
    if p < LEVEL:
        return "wider than promised"
    return "narrower than promised" if p > 1 - LEVEL else "as promised"


def _test_cell(cell: Cell, results: Sequence[Result]) -> Agreement:
    logs = [math.log(result.estimate_hz or 1.0) for result in results]
    sds = [_sd(result) for result in results]
    weights = [sd**-2 for sd in sds]
    centre = sum(weight * log for weight, log in zip(weights, logs, strict=True)) / sum(weights)
    q = sum(weight * (log - centre) ** 2 for weight, log in zip(weights, logs, strict=True))
    hertz = math.exp(centre)
    return Agreement(
        cell,
        len(results),
        hertz,
        spread=stdev(logs),
        promised=math.sqrt(sum(sd * sd for sd in sds) / len(sds)),
        holding=sum((result.low_hz or 0.0) <= hertz <= (result.high_hz or 0.0) for result in results),
        q=q,
        p=_chi_square_tail(q, len(results) - 1),
    )


def _sd(result: Result) -> float:
    """Return the standard deviation of ln(rate) that a 95 % interval reports."""
    return max(1e-6, math.log((result.high_hz or 1.0) / (result.low_hz or 1.0)) / (2 * Z))


def _chi_square_tail(q: float, freedom: int) -> float:
    """Return the probability of a chi-square variable with `freedom` degrees of freedom above `q`.

    Approximation by the cube root (Wilson and Hilferty 1931, PNAS 17, 684-688); its error is below 0.01 from 2 degrees
    on.
    """
    share = 2 / (9 * freedom)
    return 1 - _NORMAL.cdf(((q / freedom) ** (1 / 3) - (1 - share)) / math.sqrt(share))
