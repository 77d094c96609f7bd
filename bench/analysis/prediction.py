"""Predictions from a trace: by what factor a change of a setting raises the maximum rate of a cell.

All start from the shares of the critical path. A framework in batches sustains R messages/s while a batch of its
interval T takes T at most: T = o + s R T, with a part o that every batch has, however many messages are in it, and a
time s for each message. So R = (1 - o/T) / s. A longer interval changes only o/T, which the search may know better: an
activity that depends on the messages may have a fixed part, too, such as the start of a task. More workers change the
part of s that they can share (Amdahl's law). No factor exceeds what the cores of the machine have left; in batches, o/T
is also the share of the framework's CPU time that each batch takes, and that longer ones take less often.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bench.analysis.activity_graph.participation import Participation
from bench.analysis.activity_graph.summaries import IDLE, activities_over_time, is_message
from bench.analysis.advice import CHANGES
from bench.analysis.intervals import has_bracket, student_quantile
from bench.model.measurement import Measurement, Result

TOLERANCE = 0.1
"""Relative difference of two rates up to which a prediction counts as right, however narrow the intervals are."""
MIN_SIMILAR = 0.9
"""Share of a trial's rate at which another trial shows how much CPU time others than the framework need."""
MAX_FIXED = 0.95
"""Share of an interval that the fixed part of a batch may take; above it no rate can be predicted."""
SEARCH_ERROR = 0.15
"""Half of a 95 % interval of the fixed share of a batch that a search found."""
_BY_LEVER = {change.lever: change.activities for change in CHANGES if change.lever is not None}
PER_BATCH = _BY_LEVER["batch interval"]
"""Activities whose time does not depend on the number of messages in a batch."""
SHARED = _BY_LEVER["workers"]
"""Activities that more workers divide among them."""


class Factor(Struct, frozen=True):
    """The factor by which a change raises a rate, with a 95 % interval; all at least 1."""

    low: float
    estimate: float
    high: float

    def limited(self, most: "Factor") -> "Factor":
        """Return the factor where no more than `most` is possible."""
        return Factor(min(self.low, most.low), min(self.estimate, most.estimate), min(self.high, most.high))


Shares = tuple[float, float, float]
"""A share between the ends of its 95 % interval."""


class Rates(Struct, frozen=True):
    """A rate in messages/s with its interval."""

    low: float
    estimate: float
    high: float

    def overlaps(self, other: "Rates") -> bool:
        """Return whether the intervals have a rate in common."""
        return self.low <= other.high and other.low <= self.high


def fixed_shares(participation: Participation, measurement: Measurement, found: float | None = None) -> Shares:
    """Return the share of a batch interval that does not depend on the messages in a batch, o/T.

    Args:
        participation: of the trial.
        measurement: of the trial, which worked in batches.
        found: the share by the search of the cell; None if it knows none, and the trace must do.
    """
    if found is not None:
        return max(0.0, found - SEARCH_ERROR), found, found + SEARCH_ERROR
    return _fixed_shares_of_trace(participation, measurement)


def predict_longer_batches(shares: Shares, longer: float) -> Factor | None:
    """Return the factor of a batch interval that is `longer` times as long; None if the fixed part fills a batch.

    Args:
        shares: the fixed share of a batch.
        longer: new interval divided by the old one.
    """
    if shares[1] > MAX_FIXED:
        return None
    return _ordered(*((1 - share / longer) / (1 - share) for share in (min(each, MAX_FIXED) for each in shares)))


def _fixed_shares_of_trace(participation: Participation, measurement: Measurement) -> Shares:
    """Return the share of a batch interval that the fixed activities of a trace take."""
    interval = measurement.batch_interval
    window_s = participation.windows.length * participation.windows.count / 1e9
    begin = participation.windows.begin / 1e9
    batches = measurement.batches
    within = [(at, end) for at, end in zip(batches.begin, batches.end, strict=True) if begin < end <= begin + window_s]
    if len(within) > 1:
        spacing = (within[-1][1] - within[0][1]) / (len(within) - 1)
    else:
        spacing = max([interval, *(end - at for at, end in within)])
    low, mean, high = (share * spacing / interval for share in _share_with_error(participation, PER_BATCH))
    return low, mean, high


def predict_more_workers(participation: Participation, more: float, *, overloaded: bool) -> Factor:
    """Return the factor of `more` times as many workers with a core each.

    Workers that never wait for each other share everything but idling. Others share the time of each message that is
    spent on work; the part of it that a batch has anyway counts for nothing. Idling of an overloaded trial is a wait
    for a source that gives no more, which nobody shares; that of a sustained one is headroom, and counts for nothing.
    """
    idle = _share_with_error(participation, IDLE)
    if any(is_message(group) for group in participation.groups):
        apart = _share_with_error(participation, PER_BATCH)[1] + (0.0 if overloaded else idle[1])
        per_message = max(1e-9, 1 - apart)
        shared = [min(1.0, share / per_message) for share in _share_with_error(participation, SHARED)]
    else:
        shared = [1 - share if overloaded else 1.0 for share in reversed(idle)]
    return _ordered(*(1 / (1 - share + share / more) for share in shared))


def predict_equal_parts(busy: Mapping[str, float], operators: Mapping[str, str], straggler: str) -> Factor:
    """Return the factor of equal parts for all workers that do what the straggler does: then none is busier than all.

    Args:
        busy: time in which each worker neither idles nor waits.
        operators: what each worker mostly executes.
        straggler: the worker that has most of the work.
    """
    times = [busy.get(one, 0.0) for one, operator in operators.items() if operator == operators[straggler]]
    factor = busy[straggler] * len(times) / sum(times)
    return Factor(factor, factor, factor)


def spare_factor(
    measurement: Measurement, others: Iterable[Measurement] = (), shares: Shares = (0.0, 0.0, 0.0), longer: float = 1.0
) -> Factor:
    """Return by what factor this machine has CPU time for more messages; inf where that is not known.

    It limits a framework that runs on this machine. What the others need (source, load, harness) grows with the rate at
    most, and not at all at least; between the two is the estimate. They need the least that trials of such a rate show:
    a JVM needs less each minute. What the framework needs for each batch, it needs less often in longer ones.

    Args:
        measurement: of the trial whose rate grows.
        others: of the same cell.
        shares: of the framework's CPU time, for each batch.
        longer: new batch interval divided by the old one.
    """
    cpu = measurement.cpu
    framework, available = cpu.get("framework", 0.0), cpu.get("available", 0.0)
    if framework <= 0 or available <= 0:
        return Factor(math.inf, math.inf, math.inf)
    similar = [one.cpu for one in others if one.planned.rate >= MIN_SIMILAR * measurement.planned.rate]
    beside = min((_share_beside(one) for one in [cpu, *similar] if one.get("available")), default=0.0) * available
    ends = []
    for share in (min(each, MAX_FIXED) for each in shares):
        left, growing = available - share * framework / longer, (1 - share) * framework
        ends.append((left / (growing + beside), (left - beside) / growing))
    (low, _), (below, above), (_, high) = ends
    return _ordered(low, math.sqrt(below * above), high)


def _share_beside(cpu: Mapping[str, float]) -> float:
    """Return the share of a machine's CPU time that others than the framework used."""
    return max(0.0, cpu["busy"] - cpu.get("framework", 0.0)) / cpu["available"]


def rates_of(result: Result) -> Rates | None:
    """Return the maximum rate of a cell with its confidence interval; None where an end is not known."""
    low, middle, high = result.low_hz, result.estimate_hz, result.high_hz
    if result.status != "measured" or has_bracket(result) or low is None or middle is None or high is None:
        return None
    return Rates(low, middle, high)


def predict_rates(before: Rates, factor: Factor, most: float = math.inf) -> Rates:
    """Return the rate after a change; the relative errors of rate and factor are independent.

    Args:
        before: the rate without the change.
        factor: of the change.
        most: the rate in messages/s that cannot be exceeded.
    """
    middle = before.estimate * factor.estimate
    down = math.hypot(math.log(before.estimate / before.low), math.log(factor.estimate / factor.low))
    up = math.hypot(math.log(before.high / before.estimate), math.log(factor.high / factor.estimate))
    return Rates(*(min(most, each) for each in (middle * math.exp(-down), middle, middle * math.exp(up))))


def judge_prediction(before: Rates, predicted: Rates, measured: Rates) -> str:
    """Return "held", "did not hold", or "undecided" where no change at all would explain what was measured as well."""
    close = abs(measured.estimate / predicted.estimate - 1) <= TOLERANCE
    if not close and not measured.overlaps(predicted):
        return "did not hold"
    return "undecided" if measured.overlaps(before) else "held"


def _share_with_error(participation: Participation, activities: Collection[str]) -> Shares:
    """Return the share of activities of the critical path: lower end, mean and upper end, by its spread over windows.

    One window alone says nothing of the error: the share may then be anything from 0 to twice the mean.
    """
    rows: Sequence[NDArray[np.float64]] = [
        row for name, row in activities_over_time(participation).items() if name in activities
    ]
    shares = np.sum(rows, axis=0)[participation.connected] if rows else np.zeros(1)
    if not len(shares):
        return 0.0, 0.0, 0.0
    mean = float(shares.mean())
    count = len(shares)
    error = student_quantile(count - 1) * float(shares.std(ddof=1)) / math.sqrt(count) if count > 1 else mean
    return max(0.0, mean - error), mean, min(1.0, mean + error)


def _ordered(low: float, estimate: float, high: float) -> Factor:
    return Factor(max(1.0, low), max(1.0, estimate), max(1.0, high))
