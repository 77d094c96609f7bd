"""Readings of the capacity: the rate at which a system would just be in equilibrium, as one trial shows it.

A continuous system that is overloaded works all the time, so the rate at which it processes is its capacity. A system
that works in batches takes f + s n seconds for n messages; it keeps its interval B up to (B - f) / s messages a
batch. With the fixed share phi = f / B, a mean batch of x B messages that takes rho B seconds shows the capacity
(1 - phi) x / (rho - phi). A sustained trial shows that the capacity is at least the offered rate.

Where the backlog grows although batches have time left, messages do not reach the batches any faster, such as through
a receiver; the rate at which they are processed is the capacity then, and the time of light batches shows none.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import fmean, stdev
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.first_result import steady_from
from bench.analysis.foreign_work import explainable_loss
from bench.analysis.stability import FEW_MESSAGES, IDLE_RATIO, MAX_LOSS, Stability
from bench.analysis.verdict import BACKLOG_GREW, BATCHES_GREW, NOT_DRAINED, PUSHED_BACK, Verdict
from bench.model.measurement import Measurement

ReadingKind = Literal["estimate", "at least", "at most"]
BACKLOG_REASONS = (BACKLOG_GREW, PUSHED_BACK, BATCHES_GREW)
"""Reasons of a verdict "overloaded" that concern the backlog; any other reason is a breach of another objective."""
MIN_BATCHES = 3
"""Batches that show a capacity, or fewer that are as long as so many intervals: one with a large backlog tells, too."""
MAX_ESTIMATE_LOSS = 0.75
"""With a larger loss the few messages that were processed show no capacity, unless all of them were, or batches as long
as MIN_BATCHES intervals."""
NEAR_RATIO = 0.8
"""Batches that take at least this share of their interval show the capacity, nearly whatever their fixed cost is."""
MAX_DOUBT = 0.15
"""Largest loss that other work explains at which the time of sustained batches is still an estimate: they take longer,
and the fixed part of it, too, so that an estimate would be too low by more than that."""
MIN_LEFT = 0.05
"""Least share of the capacity that other work leaves."""
UNSEEN_MESSAGES = 1.5 * FEW_MESSAGES
"""Messages by which the backlog of a sustained trial may have grown: FEW_MESSAGES from its first third to its end."""
HEAD_S = 0.25
"""A counter is read from so long before the window on, and half an interval: a short window has few of its steps."""
MIN_SLICES, MAX_SLICES, MIN_SLICE_S = 4, 8, 1.0
"""Slices of a trial whose scatter shows the noise of the rate: how many, and how long each must be."""


class Reading(Struct, frozen=True):
    """A reading of one trial; rates in messages/s.

    For an estimate, and for a bound of a system that shows its batches by its counter only, `rate` is the mean batch
    divided by the interval (of a continuous system: the processed rate) and `ratio` the time that such a batch takes,
    as a share of the interval (of a continuous system: 1).
    """

    kind: ReadingKind
    rate: float
    ratio: float = 1.0
    seconds: float = 1.0
    """time that the reading rests on"""
    excess: float = 0.0
    """ln(offered rate / processed rate), at least 0: the farther beyond its capacity, the less a system behaves as at
    its capacity"""
    doubt: float = 0.0
    """share by which other work may have lowered the processed rate"""
    spread: float | None = None
    """relative noise of the rate over one second that slices of the trial show; None if they show none"""
    starved: bool = False
    """whether the backlog grew while batches had time left: messages reach them no faster, and batches are no limit"""
    age: float = math.inf
    """seconds of load that the system had worked off by the middle of the trial; inf if it is known to be warm"""
    beside: Literal["", "processed", "sustained"] = ""
    """of a lower bound beside other work that explains a loss: whether this was processed, or sustained"""
    tries: int = 1
    """of a lower bound: how many trials could have been sustained in its place"""
    largest: float = math.inf
    """messages of the largest batch divided by the interval; inf where too few batches show it"""

    @property
    def near(self) -> bool:
        """True for an estimate that hardly depends on the fixed cost of batches."""
        return self.kind == "estimate" and self.ratio >= NEAR_RATIO

    def left(self, caused: float) -> float:
        """Return the share of the capacity that is left if other work took the part `caused` of what it may take."""
        return max(MIN_LEFT, 1 - caused * self.doubt)

    def log_capacity(self, fixed_share: float, *, grows: bool = False) -> float:
        """Return ln(capacity) if a batch has a fixed cost of `fixed_share` of the interval; inf where it cannot.

        The capacity of batches that keep their interval, or else of those that grow as long as they like.
        """
        if self.ratio <= fixed_share:
            return math.inf
        return math.log(self.rate * (1.0 if grows else 1 - fixed_share) / (self.ratio - fixed_share))


def is_breach(measurement: Measurement, verdict: Verdict, stability: Stability) -> bool:
    """Return whether a trial was overloaded for another reason than its backlog, such as a lost message."""
    return verdict.word == "overloaded" and not is_of_backlog(verdict, measurement) and not stability.overloaded


def is_of_backlog(verdict: Verdict, measurement: Measurement) -> bool:
    """Return whether the reason of a verdict is that the backlog or the batches grew.

    A continuous system whose backlog did not grow misses a message where it did not drain: nothing says that its
    capacity is near. The last batches of others take longer.
    """
    return verdict.why in BACKLOG_REASONS or (verdict.why == NOT_DRAINED and measurement.batch_interval > 0)


def read_capacity(
    measurement: Measurement, verdict: Verdict, stability: Stability, age: float = math.inf
) -> Reading | None:
    """Return the reading of a trial that is not invalid; None if it shows nothing.

    Args:
        measurement: The trial with its series and, if the framework reports them, its batches.
        verdict: Its verdict.
        stability: Its stability.
        age: Seconds of load that the system had worked off by the middle of the trial; inf if it is warm.
    """
    if verdict.cause == "other work":
        reading = _read(measurement, replace(verdict, word="overloaded", why=BACKLOG_GREW), stability)
        if reading is None or not reading.near:
            return None
        return replace(_as_bound(reading), age=age)
    reading = _read(measurement, verdict, stability)
    if reading is None:
        return None
    if verdict.word != "sustained":
        return replace(reading, age=age, doubt=verdict.explained)
    explained = explainable_loss(measurement)
    if reading.kind == "at least":
        return replace(reading, age=age, beside="sustained" if explained else "")
    if explained > MAX_DOUBT:
        return replace(_as_bound(reading), age=age)
    return replace(reading, age=age, doubt=explained)


def _as_bound(reading: Reading) -> Reading:
    """Return what remains of an estimate beside other work: the system does so well at least."""
    return Reading("at least", reading.rate, reading.ratio, reading.seconds, beside="processed")


def _read(measurement: Measurement, verdict: Verdict, stability: Stability) -> Reading | None:
    rate, seconds = measurement.planned.rate, max(stability.seconds, 0.5)
    if is_breach(measurement, verdict, stability):
        return Reading("at most", rate, seconds=seconds)
    estimate = _read_batches(measurement)
    if verdict.word == "overloaded" and (estimate is None or estimate.ratio < IDLE_RATIO):
        return replace(_read_processed(measurement, verdict), starved=estimate is not None)
    if estimate is not None:
        return estimate
    if verdict.word != "sustained":
        return None
    ratio, sent = max(1.0, stability.spacing), rate * seconds
    return Reading("at least", rate * ratio * sent / (sent + UNSEEN_MESSAGES), ratio, seconds)


def _read_batches(measurement: Measurement) -> Reading | None:
    """Return the reading of the batches that began under load; None without enough of them."""
    planned, interval, batches = measurement.planned, measurement.batch_interval, measurement.batches
    end = min(planned.settle + planned.window, measurement.offered_s)
    used = [
        (finish - begin, count)
        for begin, finish, count in zip(batches.begin, batches.end, batches.messages, strict=True)
        if count and begin <= end and finish >= planned.settle and finish > begin  # a clock may have been stepped
    ]
    busy, messages = sum(took for took, _ in used), sum(count for _, count in used)
    if interval <= 0 or (len(used) < MIN_BATCHES and busy < MIN_BATCHES * interval):
        return None
    rate, ratio = messages / len(used) / interval, busy / len(used) / interval
    excess = max(0.0, math.log(planned.rate / rate * max(1.0, ratio)))
    largest = max(count for _, count in used) / interval if len(used) >= MIN_BATCHES else math.inf
    return Reading("estimate", rate, ratio, busy, excess, spread=_spread_of_batches(used), largest=largest)


def without_light_batches(readings: Sequence[Reading]) -> list[Reading]:
    """Return readings in which light batches show no capacity if any shows that batches are not the limit."""
    if not any(reading.starved for reading in readings):
        return list(readings)
    return [_as_sustained(each) if each.kind != "at most" and each.ratio < IDLE_RATIO else each for each in readings]


def _as_sustained(reading: Reading) -> Reading:
    """Return the lower bound that the rate of light batches is; of those beside other work one is left in the end."""
    beside = reading.beside or ("sustained" if reading.doubt else "")
    return replace(reading, kind="at least", ratio=1.0, doubt=0.0, beside=beside)


def merge_beside_other_work(readings: Sequence[Reading]) -> list[Reading]:
    """Return readings with one lower bound of each kind in place of all those beside other work.

    A system that works all the time processes its capacity, less what other work takes. That it did so in many trials
    shows their mean rate better, and never that the capacity is higher.

    Of the trials beside other work near the capacity, those that were overloaded are invalid. What is left of them are
    the sustained ones, by chance among them: they show no more than that the highest was sustained in so many tries.
    """
    processed = [each for each in readings if each.beside == "processed"]
    sustained = [each for each in readings if each.beside == "sustained"]
    merged = [each for each in readings if not each.beside]
    if sustained:
        highest = max(sustained, key=lambda each: each.log_capacity(0.0))
        merged.append(replace(highest, tries=len(sustained) + len(processed)))
    if processed:
        seconds = sum(each.seconds for each in processed)

        def mean(values: Iterable[float]) -> float:
            weighed = zip(processed, values, strict=True)
            return math.exp(sum(each.seconds * math.log(value) for each, value in weighed) / seconds)

        rate, ratio = mean(each.rate for each in processed), mean(each.ratio for each in processed)
        age = max(each.age for each in processed)
        merged.append(Reading("at least", rate, ratio, seconds, age=age, beside="processed"))
    return merged


def _read_processed(measurement: Measurement, verdict: Verdict) -> Reading:
    """Return the reading of the processed counter in an overloaded trial."""
    planned, interval, series = measurement.planned, measurement.batch_interval, measurement.series
    every = list(zip(series.at, series.processed, strict=True))
    end = _end_of_work(measurement)
    if interval > 0:
        every = [after for before, after in pairwise([(0.0, 0), *every]) if after[1] > before[1]]
    first_at = max(planned.settle / 2, planned.settle - HEAD_S - interval / 2)
    rows = [(at, count) for at, count in every if first_at <= at <= end + 1e-9]
    steady = [row for row in rows if row[0] >= steady_from(measurement) - HEAD_S]
    rows = steady if _last_for(steady, interval) else rows
    purged_batches = measurement.purged and interval > 0  # it was busy for as long as it was seen
    if purged_batches and not _last_for(rows, interval):
        rows = every
    if not _last_for(rows, interval) or rows[-1][1] <= rows[0][1]:
        long = purged_batches and bool(every) and every[-1][0] >= (MIN_BATCHES + 1) * interval
        if not 0 < verdict.loss < (MAX_LOSS if measurement.drained or long else MAX_ESTIMATE_LOSS):
            return Reading("at most", planned.rate, seconds=max(1.0, interval))
        rate = planned.rate * (1 - verdict.loss)
        return Reading("estimate", rate, 1.0, max(0.5, interval), -math.log1p(-verdict.loss))
    (begin, first), (finish, last) = rows[0], rows[-1]
    seconds, messages = finish - begin, last - first
    ratio = max(1.0, seconds / (len(rows) - 1) / interval) if interval > 0 else 1.0
    rate = messages / seconds * (ratio if interval > 0 else 1.0)
    excess = max(0.0, math.log(planned.rate * seconds / messages))
    return Reading("estimate", rate, ratio, seconds, excess, spread=_spread_of_rows(rows))


def _last_for(rows: Sequence[tuple[float, int]], interval: float) -> bool:
    """Return whether rows of a counter last for long enough to show a rate."""
    return len(rows) > 1 and rows[-1][0] - rows[0][0] >= max(0.5, 1.5 * interval)


def _spread_of_batches(batches: list[tuple[float, int]]) -> float | None:
    """Return the noise over one second that the time for a message shows from slice to slice of (seconds, messages)."""
    size = math.ceil(len(batches) / MAX_SLICES)
    parts = [batches[first : first + size] for first in range(0, len(batches) - size + 1, size)]
    pairs = [(sum(took for took, _ in part), sum(count for _, count in part)) for part in parts]
    return _spread([seconds for seconds, _ in pairs], [count for _, count in pairs])


def _spread_of_rows(rows: list[tuple[float, int]]) -> float | None:
    """Return the noise over one second that the rate shows from slice to slice of a counter's (seconds, messages)."""
    length = max(MIN_SLICE_S, (rows[-1][0] - rows[0][0]) / MAX_SLICES)
    ends = [rows[0]]
    for row in rows:
        if row[0] - ends[-1][0] >= length - 1e-6:
            ends.append(row)
    pairs = [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(ends)]
    return _spread([seconds for seconds, _ in pairs], [count for _, count in pairs])


def _spread(seconds: list[float], counts: list[int]) -> float | None:
    """Return the relative standard deviation of slices' rates, times the root of a slice's mean length."""
    if len(seconds) < MIN_SLICES or sum(seconds) < MIN_SLICES * MIN_SLICE_S / 2 or min(counts) <= 0:
        return None
    rates = [count / length for count, length in zip(counts, seconds, strict=True)]
    return stdev(rates) / fmean(rates) * math.sqrt(fmean(seconds))


def _end_of_work(measurement: Measurement) -> float:
    """Return until when the system certainly had a full queue: under load, and in the drain but for its last part."""
    planned, series, interval = measurement.planned, measurement.series, measurement.batch_interval
    end = min(planned.settle + planned.window, measurement.offered_s)
    done = next((at for at, count in zip(series.at, series.processed, strict=True) if count >= measurement.sent), end)
    return max(end, done - 1.5 * interval - 0.2) if measurement.drained else end
