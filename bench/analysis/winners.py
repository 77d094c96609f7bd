"""The winner at each point of a map: which system leads, by how much, or why that is open.

The error of the whole map is held: the probability that any point is called wrongly (a leader that is not the fastest,
or a tie of systems that differ by more) is at most `level`. Leads are tested at (1 - TIE_SHARE) x level, ties at
TIE_SHARE x level, each by the step-down procedure of Holm (1979), "A simple sequentially rejective multiple test
procedure", Scandinavian Journal of Statistics 6, 65-70, over the points. The two must not relax each other's levels:
where systems are equal, the tie is certain and a lead is the error.

Within a point of k systems, each rate is log-normal with the errors that its 95 % interval reports, times TAIL_FACTOR
(see bench.analysis.intervals), and p(a > b) is the one-sided probability of the seen difference if a is not faster
than b:

- A system leads if it is faster than every other one. p is twice the largest p(leader > other): the least favourable
  case is two equal systems far above the others, either of which may seem to lead.
- The best two are tied if for every system that may be the best there is another one within a factor of 1 + TIE of
  it: two one-sided tests (Schuirmann 1987, Journal of Pharmacokinetics and Biopharmaceutics 15, 657-680). p is the
  largest, over those systems, of (k - 1) times the smallest p of its partners.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal

from msgspec import Struct

from bench.analysis.intervals import NO_CONFIDENCE, TAIL_FACTOR, LogRate, has_bracket, log_rate
from bench.model.cell import Cell
from bench.model.measurement import Result

LEVEL = 0.05
TIE = 0.15
"""Two rates are tied if they are certainly within a factor of 1 + TIE of each other."""
TIE_SHARE = 0.2
"""Share of the error that is spent on ties; leads matter more."""
UNSTABLE_MARGIN = 2.0
"""Factor on the upper end of an unstable cell's interval: its true rate may be higher than its trials suggest."""
_NORMAL = NormalDist()
_OPEN = LogRate(math.inf, None, None)
"""Of a system about which nothing is known."""
_UNSTABLE_SD = 0.01

Point = tuple[int, float]
"""Message size in bytes (the mean, if sizes differ) and CPU cost in seconds per message."""
Kind = Literal["leads", "tie", "open", "single", "none"]


class PointDecision(Struct, frozen=True):
    """The decision at one point of a map.

    `kind` is "leads" for a certain leader, "tie" if the best two are certainly within TIE of each other, "single" if
    only one system runs, "none" if no system has a rate, else "open".
    """

    point: Point
    kind: Kind
    leader: str | None = None
    """of a tie or an open point the system with the highest estimate; None where no system has a rate"""
    runner_up: str | None = None
    """the fastest other system by its estimate"""
    ratio_low: float | None = None
    """lower confidence limit of the leader's rate divided by that of the best other system, at the level at which the
    point was decided; None if it is open"""
    ratio_high: float | None = None
    candidates: tuple[str, ...] = ()
    """the systems that may be the best, the highest estimate first"""
    why: str = ""
    """of an open point: why it is open"""


class _PointTests(Struct, frozen=True):
    """The systems at one point that may have a rate, the highest estimate first."""

    point: Point
    rates: tuple[tuple[str, LogRate], ...]
    results: tuple[Result, ...]
    p_lead: float | None
    """of a lead of the first system; None for a single one"""
    p_tie: float | None


def decide_points(
    results: Sequence[Result], level: float = LEVEL, *, missing: Sequence[Cell] = ()
) -> list[PointDecision]:
    """Decide every point of a map.

    Args:
        results: The results of all systems; of one run, or of its state so far.
        level: Family-wise error: the probability that any point of the map is called wrongly.
        missing: Cells without a result yet; such a system may be the best at its point.

    Returns:
        A decision for each point, in order of CPU cost, then of message size.
    """
    points: dict[Point, tuple[list[Result], list[Cell]]] = {}
    for result in results:
        points.setdefault((result.message_bytes, result.cpu_seconds), ([], []))[0].append(result)
    for cell in missing:
        points.setdefault((cell.message_bytes, cell.cpu_seconds), ([], []))[1].append(cell)
    points_tested = [_test_point(point, *points[point]) for point in sorted(points, key=lambda point: point[::-1])]
    leads = _hold_error([each.p_lead for each in points_tested], (1 - TIE_SHARE) * level)
    ties = _hold_error([each.p_tie for each in points_tested], TIE_SHARE * level)
    return [_decide(each, *of_point) for each, *of_point in zip(points_tested, leads, ties, strict=True)]


class _Test(Struct, frozen=True):
    """The outcome of a test: whether it is certain, and the level at which it was decided."""

    certain: bool
    level: float


def _hold_error(ps: Sequence[float | None], level: float) -> list[_Test]:
    """Return Holm's decision for each p; None is not tested."""
    tested = sorted((p, n) for n, p in enumerate(ps) if p is not None)
    tests = [_Test(certain=False, level=level)] * len(ps)
    certain, at = True, level
    for rank, (p, index) in enumerate(tested):
        at = level / (len(tested) - rank) if certain else at
        certain = certain and p <= at
        tests[index] = _Test(certain, at)
    return tests


def is_ruled_out(result: Result) -> bool:
    """Return True if a system has no rate at a point: it does not support the cell, or it died at every rate."""
    died = result.status == "failed" and "died " in (result.reason or "")
    return result.status == "unsupported" or (died and result.low_hz is None)


def _test_point(point: Point, results: Sequence[Result], missing: Sequence[Cell]) -> _PointTests:
    rates = [(result.system, _rate_of(result)) for result in results if not is_ruled_out(result)]
    rates += [(cell.system, _OPEN) for cell in missing]
    rates.sort(key=lambda each: _estimate(each[1]), reverse=True)
    logs = [rate for _, rate in rates]
    lead, tie = (2 * _p_lead(logs), _p_tie(logs)) if len(logs) > 1 else (None, None)
    return _PointTests(point, tuple(rates), tuple(results), lead, tie)


def _rate_of(result: Result) -> LogRate:
    """Return what is known of a rate; nothing for a cell without an answer, a bound for an unstable one."""
    if result.status == "unstable" and result.high_hz and result.interval != "bracket":
        return LogRate(math.log(UNSTABLE_MARGIN * result.high_hz), None, _UNSTABLE_SD)
    return log_rate(result) or _OPEN


def _estimate(rate: LogRate) -> float:
    """Return the order of a rate: estimates and lower bounds before upper bounds and unknown rates."""
    return rate.middle if rate.down is not None else -math.inf


def _p_above(first: LogRate, second: LogRate, margin: float = 0.0) -> float:
    """Return p for "ln(first) + margin is above ln(second)"; 1 if a side that it needs is open."""
    if first.down is None or second.up is None:
        return 1.0
    distance = first.middle + margin - second.middle
    return 1 - _NORMAL.cdf(distance / (TAIL_FACTOR * math.hypot(first.down, second.up)))


def _p_lead(logs: Sequence[LogRate]) -> float:
    """Return the largest p of the first rate against each other one."""
    return max(_p_above(logs[0], other) for other in logs[1:])


def _p_tie(logs: Sequence[LogRate]) -> float:
    """Return p for "no rate is above all others by more than TIE", with a Bonferroni factor for the partners."""
    others = len(logs) - 1
    return max(
        others * min(_p_above(other, best, math.log1p(TIE)) for m, other in enumerate(logs) if m != n)
        for n, best in enumerate(logs)
    )


def _decide(tested: _PointTests, lead: _Test, tie: _Test) -> PointDecision:
    """Return the decision on one point by the tests of a lead and of a tie."""
    names, logs = [name for name, _ in tested.rates], [rate for _, rate in tested.rates]
    if not any(rate.down is not None for rate in logs):
        unstable = any(result.status == "unstable" for result in tested.results)
        kind: Kind = "open" if _OPEN in logs or unstable else "none"
        candidates = tuple(names) if kind == "open" else ()
        return PointDecision(tested.point, kind, candidates=candidates, why=_say_why(candidates, tested.results))
    if len(logs) == 1:
        return PointDecision(tested.point, "single", names[0], candidates=tuple(names))
    candidates = tuple(name for name, rate in tested.rates if not _is_beaten(rate, logs, lead.level))
    if not lead.certain and not tie.certain:
        why = _say_why(candidates, tested.results)
        return PointDecision(tested.point, "open", names[0], names[1], candidates=candidates, why=why)
    low, high = _ratio_limits(logs, lead.level)
    return PointDecision(
        tested.point, "leads" if lead.certain else "tie", names[0], names[1],
        ratio_low=low, ratio_high=high, candidates=(names[0],) if lead.certain else candidates,
    )  # fmt: skip


def _is_beaten(rate: LogRate, logs: Sequence[LogRate], level: float) -> bool:
    """Return True if another system is certainly faster, with a Bonferroni factor for all ordered pairs.

    Of equal systems each may be called so, and of two it is the test of a lead.
    """
    pairs = len(logs) * (len(logs) - 1)
    return any(pairs * _p_above(other, rate) <= level for other in logs if other is not rate)


def _ratio_limits(logs: Sequence[LogRate], level: float) -> tuple[float | None, float | None]:
    """Return the confidence limits of the first rate divided by the best of the others; None where a side is open.

    The upper one is the lowest of several, each of which may be wrong.
    """
    z, first = _NORMAL.inv_cdf(1 - level / 2), logs[0]
    z_high = _NORMAL.inv_cdf(1 - level / (2 * (len(logs) - 1)))
    lows, highs = [], []
    for other in logs[1:]:
        distance = first.middle - other.middle
        if first.down is not None and other.up is not None:
            lows.append(distance - TAIL_FACTOR * z * math.hypot(first.down, other.up))
        if first.up is not None and other.down is not None:
            highs.append(distance + TAIL_FACTOR * z_high * math.hypot(first.up, other.down))
    known = len(lows) == len(logs) - 1
    return math.exp(min(lows)) if known else None, math.exp(min(highs)) if highs else None


def _say_why(candidates: Sequence[str], results: Sequence[Result]) -> str:
    """Return why these systems cannot be told apart, the gravest reason first."""
    by_system = {result.system: result for result in results}
    for system in candidates:
        if system not in by_system:
            return f"{system} has no result yet"
    rated = [by_system[system] for system in candidates]
    for result in rated:
        if result.status in ("failed", "not-measured"):
            return f"{result.system}: {result.status}" + (f" ({result.reason})" if result.reason else "")
        if result.status == "unstable":
            return f"{result.system} is unstable"
    if any(has_bracket(result) for result in rated):
        return NO_CONFIDENCE
    for result in rated:
        if result.status == "upper-bound":
            return f"{result.system}: only an upper bound"
    limited = [result for result in rated if result.status == "lower-bound"]
    if limited and all(result.reason == "generator" for result in limited):
        both = "both" if len(limited) == 2 else f"{len(limited)} systems"
        return f"the load generator limits {limited[0].system if len(limited) == 1 else both}"
    return (
        f"{limited[0].system}: only a lower bound" if limited else "the difference is not certain" if candidates else ""
    )
