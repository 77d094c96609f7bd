"""The maximum rate of a system at any message size and CPU cost, from the cells of its map.

Between cells the time per message is interpolated linearly in size and in cost: it is a fixed time, a time a byte, and
the cost. Beyond them it is a range. A message that is k times as large, or costs k times as much, takes at least as
long as the nearest one that was measured and at most k times as long; a smaller or cheaper one is at most as slow, and
at best k times as fast. A time that grows faster than the size is not foreseen.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from bench.analysis.intervals import has_bracket
from bench.model.measurement import REASONS, Result
from bench.units import seconds_text, size_text

Axis = Literal["size", "cost"]
Point = tuple[float, float]
"""Message size in bytes, CPU cost in seconds."""
WITH_RATE = ("measured", "lower-bound", "upper-bound", "unstable")


class PointRates(Struct, frozen=True):
    """The maximum rate of a system at a point, in messages/s; an end that is not known is None."""

    low_hz: float | None = None
    estimate_hz: float | None = None
    high_hz: float | None = None
    rests_on: tuple[Result, ...] = ()
    """the cells from which it is computed"""
    interpolated: tuple[Axis, ...] = ()
    extrapolated: tuple[Axis, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""
    """why nothing is known; empty otherwise"""


class _Times(Struct, frozen=True):
    """Seconds per message: the most, the estimate, the least."""

    slow: float | None
    middle: float | None
    fast: float | None


def rates_at(results: Sequence[Result], message_bytes: float, cpu_seconds: float, cores: int) -> PointRates:
    """Return the maximum rate of a system at a point.

    Args:
        results: The results of the system, one at least.
        message_bytes: Message size.
        cpu_seconds: CPU cost of a message.
        cores: Cores that the cost of messages can use at once.
    """
    cells: dict[Point, Result] = {(result.message_bytes, result.cpu_seconds): result for result in results}
    by_size = _nearest(message_bytes, {size for size, _ in cells})
    by_cost = _nearest(cpu_seconds, {cost for _, cost in cells})
    weights = {(size, cost): a * b for size, a in by_size.items() for cost, b in by_cost.items()}
    if missing := [text for point in weights if (text := _why_missing(point, cells.get(point)))]:
        return PointRates(reason="; ".join(missing))
    used = [cells[point] for point in weights]
    times = _interpolate([_times_of(result) for result in used], list(weights.values()))
    extrapolated = list[Axis]()
    if len(by_size) == 1 and message_bytes not in by_size:
        extrapolated.append("size")
        times = _stretch(times, message_bytes / next(iter(by_size)))
    if len(by_cost) == 1 and cpu_seconds not in by_cost:
        extrapolated.append("cost")
        times = _stretch_cost(times, next(iter(by_cost)), cpu_seconds)
    if extrapolated and times.fast is not None:  # no core spends the cost in less time, whatever the size
        times = _Times(times.slow, times.middle, max(times.fast, cpu_seconds / cores))
    return PointRates(
        low_hz=_inverse(times.slow),
        estimate_hz=_inverse(times.middle),
        high_hz=_inverse(times.fast),
        rests_on=tuple(used),
        interpolated=_interpolated(by_size, by_cost),
        extrapolated=tuple(extrapolated),
        notes=tuple(dict.fromkeys(note for result in used for note in _notes_of(result))),
    )


def _interpolated(by_size: Mapping[float, float], by_cost: Mapping[float, float]) -> tuple[Axis, ...]:
    """Return the axes on which a point lies between two values."""
    axes: dict[Axis, Mapping[float, float]] = {"size": by_size, "cost": by_cost}
    return tuple(axis for axis, near in axes.items() if len(near) == 2)


def _nearest(value: float, known: set[float]) -> dict[float, float]:
    """Return the weights of the nearest known values: one alone if it is the value, or the value lies beyond all."""
    low = max((each for each in known if each <= value), default=None)
    high = min((each for each in known if each >= value), default=None)
    near = sorted({each for each in (low, high) if each is not None})
    if len(near) == 1:
        return {near[0]: 1.0}
    share = (value - near[0]) / (near[1] - near[0])
    return {near[0]: 1 - share, near[1]: share}


def _why_missing(point: Point, result: Result | None) -> str:
    """Return why the map has no rate at a point; empty if it has one."""
    if result is not None and result.status in WITH_RATE:
        return ""
    at = f"{size_text(point[0])}, {seconds_text(point[1])}"
    if result is None:
        return f"{at}: no result"
    return f"{at}: {result.status}{f' ({result.reason})' if result.reason else ''}"


def _notes_of(result: Result) -> list[str]:
    """Return what the user should know of a cell from which a rate is computed."""
    at, notes = f"{result.cell.size_text}, {seconds_text(result.cpu_seconds)}", list[str]()
    if result.status in ("lower-bound", "upper-bound"):
        why = REASONS.get(result.reason or "", result.reason or "")
        notes.append(f"{at} is only a{'n upper' if result.status == 'upper-bound' else ' lower'} bound: {why}")
    if result.status == "unstable":
        notes.append(f"the trials at {at} contradict each other")
    if result.status == "measured" and has_bracket(result):
        notes.append(f"the interval at {at} is a bracket, without a probability")
    if result.sizes is not None:
        notes.append(f"the sizes at {at} differ around their mean")
    return notes


def _times_of(result: Result) -> _Times:
    bounded = result.status in ("lower-bound", "upper-bound")
    low = None if result.status == "upper-bound" else result.low_hz
    high = None if result.status == "lower-bound" else result.high_hz
    return _Times(_inverse(low), None if bounded else _inverse(result.estimate_hz), _inverse(high))


def _inverse(value: float | None) -> float | None:
    """Return 1 / value; None for None and for 0, which says nothing."""
    return 1 / value if value else None


def _interpolate(times: Sequence[_Times], weights: Sequence[float]) -> _Times:
    def mean(ends: Sequence[float | None]) -> float | None:
        known = [end * weight for end, weight in zip(ends, weights, strict=True) if end is not None]
        return sum(known) if len(known) == len(ends) else None

    return _Times(
        mean([each.slow for each in times]), mean([each.middle for each in times]), mean([each.fast for each in times])
    )


def _stretch(times: _Times, factor: float) -> _Times:
    """Return the times of messages that are `factor` times as large as those that were measured."""
    return _Times(
        times.slow if times.slow is None else times.slow * max(1.0, factor),
        None,
        times.fast if times.fast is None else times.fast * min(1.0, factor),
    )


def _stretch_cost(times: _Times, measured: float, asked: float) -> _Times:
    """Return the times of messages of another cost, in seconds.

    At best what took the time that was measured was something else. From messages without any cost nothing follows
    about the most: the share of the cores that a cost gets is not known.
    """
    if asked < measured:
        return _stretch(times, asked / measured)
    slow = times.slow * asked / measured if times.slow is not None and measured > 0 else None
    return _Times(slow, None, times.fast)
