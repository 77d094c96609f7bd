"""Runs of the same cells held together: whether their estimates spread as widely as the interval of each of them promises.

Cochran's Q (1954, Biometrics 10) on the logarithms of the rates: each estimate is weighted by the width of its own interval, and Q
is about as large as there are runs, less one, when the intervals tell the truth. A much larger one says that they are too narrow, a
much smaller one that they are too wide.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist, stdev
from typing import Literal

from msgspec import Struct

from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.units import seconds_text, size_text

MIN_RUNS = 3
LEVEL = 0.05
"""How rarely, from each side, honest intervals may be called too narrow or too wide."""
_NORMAL = NormalDist()
_Z = _NORMAL.inv_cdf(0.975)


class Agreement(Struct, frozen=True):
    """One cell of several runs: `centre_hz` in messages/s; `spread` (seen) and `promised` are standard deviations, as shares."""

    cell: Cell
    runs: int
    centre_hz: float
    spread: float
    promised: float
    holding: int
    """how many of the intervals hold the centre"""
    q: float
    p: float
    """the chance of a Q at least as large when the intervals are honest"""

    @property
    def word(self) -> Literal["as reported", "wider than reported", "narrower than reported"]:
        """What the spread is, against the intervals."""
        if self.p < LEVEL:
            return "wider than reported"
        return "narrower than reported" if self.p > 1 - LEVEL else "as reported"

    @property
    def name(self) -> str:
        """The cell as people read it."""
        return f"{self.cell.system}, {size_text(self.cell.message_bytes)}, {seconds_text(self.cell.cpu_seconds)}"

    def sentence(self) -> str:
        """The same in words."""
        return (
            f"{self.runs} runs: estimates spread by {100 * self.spread:.1f} %, their intervals promise {100 * self.promised:.1f} % "
            f"(standard deviations); {self.holding} of {self.runs} intervals hold the common middle. The spread is {self.word} "
            f"(Q = {self.q:.1f}, p = {self.p:.2f})."
        )


def agreements(runs: Sequence[Sequence[Result]]) -> list[Agreement]:
    """An agreement for each cell that at least LEAST_RUNS of the runs measured with an interval, in the order of the first run."""
    found: dict[Cell, list[Result]] = {}
    for results in runs:
        for result in results:
            if result.status == "measured" and result.estimate_hz and result.low_hz and result.high_hz:
                found.setdefault(result.cell, []).append(result)
    return [agreement(cell, results) for cell, results in found.items() if len(results) >= MIN_RUNS]


def agreement(cell: Cell, results: Sequence[Result]) -> Agreement:
    """The agreement of one cell's results, each with estimate and interval."""
    places = [math.log(result.estimate_hz or 1.0) for result in results]
    sds = [max(1e-6, math.log((result.high_hz or 1.0) / (result.low_hz or 1.0)) / (2 * _Z)) for result in results]
    weights = [sd**-2 for sd in sds]
    centre = sum(weight * place for weight, place in zip(weights, places, strict=True)) / sum(weights)
    q = sum(weight * (place - centre) ** 2 for weight, place in zip(weights, places, strict=True))
    hertz = math.exp(centre)
    return Agreement(
        cell,
        len(results),
        hertz,
        spread=stdev(places),
        promised=math.sqrt(sum(sd * sd for sd in sds) / len(sds)),
        holding=sum((result.low_hz or 0.0) <= hertz <= (result.high_hz or 0.0) for result in results),
        q=q,
        p=_above(q, len(results) - 1),
    )


def _above(q: float, freedom: int) -> float:
    """The chance of a chi-square of that freedom above `q` (Wilson and Hilferty's cube root, within 0.01 from 2 degrees on)."""
    share = 2 / (9 * freedom)
    return 1 - _NORMAL.cdf(((q / freedom) ** (1 / 3) - (1 - share)) / math.sqrt(share))
