"""Comparison of two runs of the same cells: for each cell the ratio of its rates, its 95 % interval, and a decision.

The decisions hold for all cells together: for two equal systems, the probability that any cell is called different is
at most `level` (family-wise error; step-down procedure of Holm 1979, "A simple sequentially rejective multiple test
procedure", Scandinavian Journal of Statistics 6, 65-70). Assumption: ln(rate) is normal with the standard deviation
that its interval reports. A bound is a one-sided interval: two bounds decide if they exclude each other, and not if
they overlap. A bracket is no confidence interval and is not compared.

A machine that is shared is not equally fast on every day. Where its speed was measured in both runs, the equal systems
of the null hypothesis may differ by any factor between 1 and the ratio of these speeds: a difference that the machine
can explain is undecided.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.intervals import NO_CONFIDENCE, TAIL_FACTOR, Z, has_bracket, log_rate
from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.units import rate_text

LEVEL = 0.05

MACHINE = "the machine's speed may explain it"

Decision = Literal["faster", "slower", "undecided", "not compared"]


class CellComparison(Struct, frozen=True):
    """The comparison of one cell of run B with run A.

    `ratio` is B's rate divided by A's, `low` and `high` its 95 % interval (None: open). `p` is the two-sided
    probability of a difference at least this large between equal systems, before the correction for the number of
    cells.
    """

    cell: Cell
    word: Decision
    why: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float = 1.0
    log_ratio: float = 0.0
    """ln(ratio), also of bounds"""
    sd: float | None = None
    """its standard deviation on the side of 0; None where that side is open"""


def compare(
    first: Sequence[Result], second: Sequence[Result], level: float = LEVEL, speeds: Sequence[float] = ()
) -> list[CellComparison]:
    """Compare the cells of two runs.

    Args:
        first: The results of run A.
        second: The results of run B.
        level: Family-wise error: probability that any cell of two equal systems is called faster or slower.
        speeds: Ratios of the machine's speeds, that of B divided by that of A; none where they were not measured.

    Returns:
        The cells of both runs in the order of run A, then the cells of only one run.
    """
    before, after = ({result.cell: result for result in results} for results in (first, second))
    both = [_compare_cell(cell, before[cell], after[cell]) for cell in before if cell in after]
    only = [CellComparison(cell, "not compared", "only in A") for cell in before if cell not in after]
    only += [CellComparison(cell, "not compared", "only in B") for cell in after if cell not in before]
    margins = [math.log(speed) for speed in (1.0, *speeds)]
    decided = _decide(both, level)
    explained = _decide([_beyond(each, min(margins), max(margins)) for each in both], level)
    return [
        replace(plain, word="undecided", why=MACHINE) if plain.word != each.word else plain
        for plain, each in zip(decided, explained, strict=True)
    ] + only


def ratio_text(each: CellComparison) -> str:
    """Return the ratio with its interval as text; an open end stays empty."""
    if each.low is None and each.high is None:
        return ""
    low, high = ("" if end is None else _factor_text(end) for end in (each.low, each.high))
    return f"x{_factor_text(each.ratio)} [{low}, {high}]" if each.ratio is not None else f"[{low} .. {high}]"


def _factor_text(factor: float) -> str:
    """Return a factor with two decimals, a small one with three digits."""
    return f"{factor:.2f}" if factor >= 0.1 else f"{factor:.3g}"


def _compare_cell(cell: Cell, before: Result, after: Result) -> CellComparison:
    a, b = log_rate(before), log_rate(after)
    if a is None or b is None:
        missing = [
            NO_CONFIDENCE if has_bracket(result) else f"{name} {result.status}"
            for name, result, log in (("A", before, a), ("B", after, b))
            if log is None
        ]
        return CellComparison(cell, "not compared", ", ".join(dict.fromkeys(missing)))
    ratio = b.middle - a.middle
    # The lower end of the ratio needs an upper limit of A and a lower limit of B; its upper end the reverse.
    down = TAIL_FACTOR * math.hypot(a.up, b.down) if a.up is not None and b.down is not None else None
    up = TAIL_FACTOR * math.hypot(a.down, b.up) if a.down is not None and b.up is not None else None
    low = math.exp(ratio - Z * down) if down is not None else None
    high = math.exp(ratio + Z * up) if up is not None else None
    needed = down if ratio > 0 else up
    both = None not in (a.down, a.up, b.down, b.up)
    why, shown = ("", math.exp(ratio)) if both else ("bounds", None)
    return CellComparison(cell, "undecided", why, shown, low, high, _two_sided(ratio, needed), ratio, needed)


def _two_sided(distance: float, sd: float | None) -> float:
    """Return the two-sided probability of a distance from 0 at least this large; 1 where its error is unknown."""
    return 2 * (1 - NormalDist().cdf(abs(distance) / sd)) if sd is not None else 1.0


def _beyond(each: CellComparison, least: float, most: float) -> CellComparison:
    """Return the comparison with its p if equal systems may differ by any ln(ratio) between `least` and `most`."""
    if each.word == "not compared":
        return each
    return replace(each, p=_two_sided(each.log_ratio - min(most, max(least, each.log_ratio)), each.sd))


def claim_text(result: Result) -> str:
    """Return the rate of a result as text, a bound with its sign; the status where there is no rate."""
    if result.status in ("failed", "unsupported", "not-measured"):
        return result.status
    if result.status == "lower-bound":
        return f"≥ {rate_text(result.low_hz or result.estimate_hz)}"
    return (
        f"≤ {rate_text(result.high_hz)}"
        if result.status == "upper-bound"
        else rate_text(result.estimate_hz or result.low_hz)
    )


def _decide(compared: Sequence[CellComparison], level: float) -> list[CellComparison]:
    """Return the comparisons with Holm's decisions.

    In ascending order of p, a cell is decided while p <= level / (number of undecided cells left).
    """
    tested = sorted(
        (index for index, each in enumerate(compared) if each.word == "undecided"), key=lambda i: compared[i].p
    )
    decided = list(compared)
    for rank, index in enumerate(tested):
        each = compared[index]
        if each.p > level / (len(tested) - rank):
            break
        up = each.ratio > 1 if each.ratio is not None else each.low is not None
        decided[index] = replace(each, word="faster" if up else "slower")
    return decided
