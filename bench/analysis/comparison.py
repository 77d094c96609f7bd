"""Two runs of the same cells held against each other: for each cell the ratio of its rates with an interval, and a verdict.

A cell is called different only when that stands against all cells that were compared: the chance that any cell of two equal systems
is called different is at most `level` over the whole map (Holm, 1979, Scandinavian Journal of Statistics 6). Censored cells are
understood: a bound is a one-sided interval, and two bounds that point apart decide, two that overlap do not.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.units import rate_text

LEVEL = 0.05
NOMINAL = 0.95
"""What an interval of a result claims to hold."""
MIN_SD = 0.01
"""Of the logarithm of a rate: two runs of one cell differ by more than their intervals show (a warm cache, another port)."""
TAIL = 1.2
"""Errors of a few trials have longer tails than a normal law: of 40 maps of 12 equal cells 3 showed a change, with this none."""
_Z = NormalDist().inv_cdf((1 + NOMINAL) / 2)

Word = Literal["faster", "slower", "undecided", "not compared"]


class Compared(Struct, frozen=True):
    """One cell of B against A: `ratio` is B's rate by A's; `p` the chance of a difference as large between equal systems."""

    cell: Cell
    word: Word
    why: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float = 1.0


class _Place(Struct, frozen=True):
    """A rate on a logarithmic scale: its middle and standard deviation, or the one side on which it lies."""

    middle: float
    sd: float
    side: int = 0
    """1: at least `middle`; -1: at most; 0: about"""


def compare(first: Sequence[Result], second: Sequence[Result], level: float = LEVEL) -> list[Compared]:
    """Every cell of both runs, in the order of the first; cells of only one of them last."""
    before, after = ({result.cell: result for result in results} for results in (first, second))
    both = [_against(cell, before[cell], after[cell]) for cell in before if cell in after]
    only = [Compared(cell, "not compared", "only in A") for cell in before if cell not in after]
    only += [Compared(cell, "not compared", "only in B") for cell in after if cell not in before]
    return [*_decided(both, level), *only]


def ratio_text(each: Compared) -> str:
    """The ratio with its interval; an open end is left open."""
    if each.low is None and each.high is None:
        return ""
    low, high = ("" if end is None else f"{end:.2f}" for end in (each.low, each.high))
    return f"x{each.ratio:.2f} [{low}, {high}]" if each.ratio is not None else f"[{low} .. {high}]"


def _against(cell: Cell, before: Result, after: Result) -> Compared:
    a, b = _place(before), _place(after)
    if a is None or b is None:
        silent = [
            f"{name} {result.status}" for name, result, place in (("A", before, a), ("B", after, b)) if place is None
        ]
        return Compared(cell, "not compared", ", ".join(silent))
    sd, ratio = TAIL * math.hypot(a.sd, b.sd), b.middle - a.middle
    if a.side == b.side == 0:
        reach = _Z * sd
        p = 2 * (1 - NormalDist().cdf(abs(ratio) / sd))
        return Compared(cell, "undecided", "", math.exp(ratio), math.exp(ratio - reach), math.exp(ratio + reach), p)
    # The ratio's lower end is known when A is at most and B at least something (or about it), its upper end likewise.
    low = math.exp(ratio - _Z * sd) if a.side <= 0 and b.side >= 0 else None
    high = math.exp(ratio + _Z * sd) if a.side >= 0 and b.side <= 0 else None
    points_apart = (low is not None and ratio > 0) or (high is not None and ratio < 0)
    p = 2 * (1 - NormalDist().cdf(abs(ratio) / sd)) if points_apart else 1.0
    return Compared(cell, "undecided", "bounds", None, low, high, p)


def claim_text(result: Result) -> str:
    """A result's rate as it may be claimed: a bound says that it is one; the status where there is no rate."""
    if result.status in ("failed", "unsupported"):
        return result.status
    if result.status == "lower-bound":
        return f"≥ {rate_text(result.low_hz or result.estimate_hz)}"
    return (
        f"≤ {rate_text(result.high_hz)}"
        if result.status == "upper-bound"
        else rate_text(result.estimate_hz or result.low_hz)
    )


def _place(result: Result) -> _Place | None:
    low, high = result.low_hz, result.high_hz
    if result.status in ("failed", "unsupported", "unstable"):
        return None
    if low and high:
        middle = result.estimate_hz if result.estimate_hz else math.sqrt(low * high)
        sd = max(MIN_SD, math.log(high / low) / (2 * _Z))
        return _Place(math.log(middle), sd)
    if low:
        return _Place(math.log(low), MIN_SD, 1)
    return _Place(math.log(high), MIN_SD, -1) if high else None


def _decided(compared: Sequence[Compared], level: float) -> list[Compared]:
    """The same with verdicts: from the smallest p on, as long as each is below level / (how many are left)."""
    tested = sorted(
        (place for place, each in enumerate(compared) if each.word == "undecided"), key=lambda i: compared[i].p
    )
    found = list(compared)
    for rank, place in enumerate(tested):
        each = compared[place]
        if each.p > level / (len(tested) - rank):
            break
        up = each.ratio > 1 if each.ratio is not None else each.low is not None
        found[place] = replace(each, word="faster" if up else "slower")
    return found
