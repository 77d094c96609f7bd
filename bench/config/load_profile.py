"""The load profile of a scenario: from its bursts, its steps, a trace (a CSV file of times and rates), or its parts."""

import csv
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from bench.config.elasticity import LoadPart
from bench.config.scenario import LoadSettings
from bench.errors import UsageError
from bench.model.arrivals import Profile

MAX_ROWS = 100_000
SLOPE_STEPS = 120
"""Steps that stand for the slope of a ramp or a day."""
BURST_SHARE = 0.2
"""Of its period."""


def profile_of(load: LoadSettings) -> Profile:
    """Return the profile as parts of (seconds, relative rate), repeated; empty for arrivals without one.

    Raises:
        UsageError: The trace is missing or wrong.
    """
    if load.arrivals == "bursts":
        period, share = float(load.bursts.period), float(load.bursts.share)
        return ((period * share, 1.0), (period * (1 - share), 0.0)) if share < 1 else ((period, 1.0),)
    if load.arrivals == "steps":
        return tuple((float(load.steps.every), float(level)) for level in load.steps.levels)
    if load.arrivals == "trace":
        if load.trace is None:
            raise UsageError("load.trace: found nothing; allowed: the path of a CSV file of times (s) and rates")
        return read_trace(Path(load.trace))
    return ()


def period_of(load: LoadSettings) -> float:
    """Return the seconds after which the profile of a load begins again; 0.0 for arrivals without one.

    Raises:
        UsageError: The trace is missing or wrong.
    """
    return sum(seconds for seconds, _ in profile_of(load))


def profile_over_time(parts: Sequence[LoadPart]) -> Profile:
    """Return the load of a scenario of kind elasticity as steps of (seconds, messages/s).

    Raises:
        UsageError: A trace is wrong, or no message is due at all.
    """
    profile = tuple(step for part in parts for step in _steps_of(part) if step[0] > 0)
    if not any(rate > 0 for _, rate in profile):
        raise UsageError("elasticity.load: found no rate above 0; allowed: at least one")
    return profile


def _steps_of(part: LoadPart) -> Iterator[tuple[float, float]]:
    """Yield the steps of a part."""
    seconds, low, high = float(part.time), float(part.rate), float(part.to or 0.0)
    if part.shape == "step":
        yield seconds, low
    elif part.shape == "trace":
        trace = read_trace(Path(part.trace or ""), "elasticity.load.trace")
        whole, highest = sum(length for length, _ in trace), max(rate for _, rate in trace)
        yield from ((length * seconds / whole, rate * low / highest) for length, rate in trace)
    elif part.shape == "bursts":
        period = min(seconds, float(part.period or seconds / 10))
        for number in range(math.ceil(seconds / period - 1e-9)):
            length = min(period, seconds - number * period)
            burst = min(length, BURST_SHARE * period)
            yield from ((burst, high), (length - burst, low))
    else:
        for number in range(SLOPE_STEPS):
            along = (number + 0.5) / SLOPE_STEPS
            share = along if part.shape == "ramp" else (1 - math.cos(2 * math.pi * along)) / 2
            yield seconds / SLOPE_STEPS, low + (high - low) * share


@lru_cache(maxsize=4)
def read_trace(path: Path, key: str = "load.trace") -> Profile:
    """Read a CSV file of `time,rate` lines: seconds, and rates in any unit, each valid until the next time.

    The last line only ends the one before it. A header line is skipped.

    Args:
        path: The file.
        key: Of the scenario, for error messages.

    Raises:
        UsageError: The file cannot be read, or a line is wrong; with its number.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), 1) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise UsageError(f"{key}: {path} cannot be read: {problem}") from None
    if rows and not _is_number(rows[0][1][0]):
        rows = rows[1:]  # a header
    if not 2 <= len(rows) <= MAX_ROWS:
        raise UsageError(f"{key}: {path} has {len(rows)} lines of time,rate; allowed: 2 to {MAX_ROWS}")
    points = [_point(path, number, row) for number, row in rows]
    for (number, _), (before, after) in zip(rows[1:], pairwise(points), strict=True):
        if after[0] <= before[0]:
            raise UsageError(f"{path}:{number}: the time {after[0]:g} does not come after {before[0]:g}")
    profile = tuple((after[0] - before[0], before[1]) for before, after in pairwise(points))
    if not any(rate > 0 for _, rate in profile):
        raise UsageError(f"{key}: {path} has no rate above 0")
    return profile


def _point(path: Path, number: int, row: list[str]) -> tuple[float, float]:
    if len(row) == 2 and _is_number(row[0]) and _is_number(row[1]) and float(row[1]) >= 0:
        return float(row[0]), float(row[1])
    raise UsageError(f"{path}:{number}: found {','.join(row)[:60]!r}; allowed: time,rate, such as 12.5,2000")


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < 1e15  # neither nan nor inf
    except ValueError:
        return False
