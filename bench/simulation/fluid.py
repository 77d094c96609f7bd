"""A simulated system: a fluid queue of known capacity that makes trials as the harness does, without taking time.

A trial is computed in one vectorised pass: the queue is the sum of arrivals less possible departures, minus its running
minimum below zero (Lindley's recursion; Lindley 1952, "The theory of queues with a single server").
"""

import math

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from bench.analysis.first_result import FILL_FACTOR, MAX_WAIT_S
from bench.analysis.hopeless_backlog import FALLING_SHARE, max_growth, recent_seconds, worth_waiting
from bench.analysis.verdict import Rules
from bench.model.measurement import EndReason, Measurement, PlannedTrial, Series
from bench.simulation.capacity import TICK_S, Capacity, Ticks, Traits
from bench.simulation.faults import Counters, Faults

MAX_DRAINED_QUEUE = 0.5
"""A queue of at most this many messages counts as drained."""
RESTART_S = 30.0
MIN_SHARE = 0.05
"""Least share of the capacity that the load leaves to the system."""
MAX_FULL_SERIES_S, THINNING = 120.0, 5
"""A longer trial keeps only every fifth row of its series, besides those in which the processed counter moved."""


class Flow(Struct, frozen=True):
    """Total arrivals and departures by the end of each tick since the first one, and the queue then, in messages."""

    arrived: Ticks
    departed: Ticks
    queue: Ticks

    def head(self, count: int) -> "Flow":
        """Return the first ticks."""
        return Flow(self.arrived[:count], self.departed[:count], self.queue[:count])

    def append(self, later: "Flow") -> "Flow":
        """Return this flow followed by a later one."""
        arrived = self.arrived[-1] if len(self.arrived) else 0.0
        departed = self.departed[-1] if len(self.departed) else 0.0
        return Flow(
            np.concatenate((self.arrived, later.arrived + arrived)),
            np.concatenate((self.departed, later.departed + departed)),
            np.concatenate((self.queue, later.queue)),
        )


class Fluid:
    """One run of a simulated system; its clock advances only by trials and restarts."""

    def __init__(self, traits: Traits, faults: Faults, seed: int, *, drains: bool = True, age: float = 0.0) -> None:
        """Take up a system that was under load for `age` seconds."""
        self.traits, self.clock = traits, 0
        self._faults, self._drains, self._started, self._queue = faults, drains, -round(age / TICK_S), 0.0
        self._capacity = Capacity(traits, seed)
        self._arrivals = np.random.default_rng([seed, 3])

    @property
    def seconds(self) -> float:
        """The time of the system's clock."""
        return self.clock * TICK_S

    def restart(self) -> None:
        """Replace the system by a cold one with an empty queue; takes RESTART_S."""
        self.clock += round(RESTART_S / TICK_S)
        self._started, self._queue = self.clock, 0.0

    def run_trial(self, planned: PlannedTrial, drain: float, time_left: float = math.inf) -> Measurement:
        """Run a trial and return the harness's measurement of it.

        Args:
            planned: The trial.
            drain: Deadline of the drain in seconds, to which two batch intervals are added.
            time_left: Of the search, in seconds from the trial's begin.
        """
        begin, count = self.clock, round((planned.settle + planned.window) / TICK_S)
        rate = 0.0 if self._faults.rejects else min(planned.rate, self.traits.generator)
        flow = self._flow(rate, count, self._queue, self.traits.quick_messages)
        carried = self._queue
        ended, ticks = self._ending(planned, self._counters(planned, flow, begin, carried), begin)
        flow = flow.head(ticks)
        self.clock, self._queue = begin + ticks, float(flow.queue[-1])
        interval = self.traits.batch_interval
        loaded = measurement_of(
            planned, self._counters(planned, flow, begin, carried), interval, ended=ended, ticks=ticks
        )
        wait = drain_seconds(loaded, drain, time_left)
        if ended in ("complete", "hopeless") and self._drains:
            flow = flow.append(self._drain(wait + 2 * interval))
        self.clock = begin + len(flow.arrived)
        empty = ended != "framework died" and (self._queue <= MAX_DRAINED_QUEUE or not self._drains)
        self._queue = self._queue if self._queue > MAX_DRAINED_QUEUE else 0.0
        counters = self._counters(planned, flow, begin, carried)
        measurement = measurement_of(planned, counters, interval, ended=ended, ticks=ticks)
        settled = min(round(planned.settle / TICK_S), ticks - 1)
        cpu = self._capacity.cpu_beside(begin + settled, ticks - settled)
        measurement = replace(measurement, warm_s=(begin - self._started) * TICK_S, cpu=cpu)
        measurement = with_drain(measurement, empty=empty, purged=wait < drain)
        return self._faults.distort_totals(measurement, begin * TICK_S)

    def _flow(self, rate: float, count: int, queue: float, quick: float = 0.0) -> Flow:
        """Return the flow of the next `count` ticks at `rate` messages/s.

        Args:
            rate: of the arrivals.
            count: of ticks.
            queue: messages that wait already.
            quick: so many messages arrive before the system has its usual capacity.
        """
        speed = self._capacity.rates(self.clock, count, self._started)
        speed[: int(quick / (rate * TICK_S)) if rate else 0] *= self.traits.quick_factor
        capacity = np.maximum(speed - self.traits.shared * rate, MIN_SHARE * speed) * TICK_S
        arrivals = np.full(count, rate * TICK_S)
        if self.traits.poisson:
            arrivals = self._arrivals.poisson(arrivals).astype(np.float64)
        limit = self.traits.collapse_after * self.traits.mean_capacity
        queued = _lindley(arrivals - capacity, queue)
        if self.traits.collapse_loss and max(queue, float(queued.max(initial=0.0))) > limit:
            queued = self._collapsing_queue(arrivals, capacity, queue, limit)
        total = np.cumsum(arrivals)
        return Flow(total, total + queue - queued, queued)

    def _collapsing_queue(self, arrivals: Ticks, capacity: Ticks, queue: float, limit: float) -> Ticks:
        """Return the queue of a system that is slower while its queue is long, computed from change to change."""
        parts, at, count = [], 0, len(arrivals)
        while at < count:
            slow = queue > limit
            part = _lindley(arrivals[at:] - capacity[at:] * (1 - self.traits.collapse_loss * slow), queue)
            changed = np.flatnonzero((part > limit) != slow)
            part = part[: int(changed[0]) + 1] if len(changed) else part
            parts.append(part)
            at, queue = at + len(part), float(part[-1])
        return np.concatenate(parts)

    def _drain(self, deadline: float) -> Flow:
        """Return the flow without arrivals until the queue is empty and all departures are counted.

        It ends after `deadline` seconds at the latest.
        """
        longest, flow = round(deadline / TICK_S), Flow(np.empty(0), np.empty(0), np.empty(0))
        while len(flow.queue) < longest and self._queue > MAX_DRAINED_QUEUE:
            expected = 10 + int(1.5 * self._queue / (self.traits.mean_capacity * TICK_S))
            part = self._flow(0.0, min(longest - len(flow.queue), expected), self._queue)
            empty = np.flatnonzero(part.queue <= MAX_DRAINED_QUEUE)
            part = part.head(int(empty[0]) + 1) if len(empty) else part
            flow = flow.append(part)
            self.clock, self._queue = self.clock + len(part.queue), float(part.queue[-1])
        return flow.append(self._flow(0.0, self._ticks_until_counted(), self._queue))

    def _ticks_until_counted(self) -> int:
        """Return the ticks from now on until all departures are counted as processed."""
        batch = round(self.traits.batch_interval / TICK_S)
        hidden = round(self._faults.next_visible(self.clock * TICK_S) / TICK_S) - self.clock
        if not batch:
            return hidden + int(self.traits.latency / TICK_S) + 1
        return (-(-(self.clock + hidden) // batch) + 1) * batch - self.clock

    def _counters(self, planned: PlannedTrial, flow: Flow, begin: int, carried: float) -> Counters:
        """Return the counters at the end of each tick, in whole messages.

        The queue that an earlier trial left, of `carried` messages, departs first and is not counted.
        """
        at = (np.arange(1, len(flow.arrived) + 1) * TICK_S).astype(np.float64)
        due = np.minimum(planned.rate * at, planned.rate * (planned.settle + planned.window)).astype(np.float64)
        processed = np.maximum(self._count_processed(flow.departed, begin) - carried, 0.0).astype(np.float64)
        if self.traits.poisson:
            due = flow.arrived
        counters = Counters(at, _round(due), _round(flow.arrived), _round(processed))
        return self._faults.distort_counters(counters, begin * TICK_S)

    def _count_processed(self, departed: Ticks, begin: int) -> Ticks:
        """Return the departures counted as processed: after the latency, or when the batch after them is complete."""
        batch = round(self.traits.batch_interval / TICK_S)
        total = np.concatenate([[0.0], np.maximum.accumulate(departed)])  # rounding errors may let a sum decrease
        if batch:
            indices = (np.arange(1, len(departed) + 1) + begin) // batch * batch - batch - begin
            return np.asarray(total[np.maximum(indices, 0)])
        whole, part = divmod(self.traits.latency / TICK_S, 1.0)
        indices = np.arange(1, len(departed) + 1) - int(whole)
        now, earlier = total[np.maximum(indices, 0)], total[np.maximum(indices - 1, 0)]
        return np.asarray(now - part * (now - earlier))

    def _ending(self, planned: PlannedTrial, counters: Counters, begin: int) -> tuple[EndReason, int]:
        """Return how the load of a trial ends, and after how many ticks."""
        count = len(counters.at)
        hopeless = hopeless_after(planned, counters, self.traits.batch_interval)
        dead = self._faults.seconds_until_death(planned.rate, begin * TICK_S, count * TICK_S)
        if dead is not None and round(dead / TICK_S) <= (hopeless or count):
            return "framework died", max(1, round(dead / TICK_S))
        return ("hopeless", hopeless) if hopeless else ("complete", count)


def _round(count: Ticks) -> Ticks:
    return np.asarray(np.floor(count + 0.5), dtype=np.float64)


def _lindley(growth: Ticks, queue: float) -> Ticks:
    """Return max(0, q + growth) tick by tick, from q = `queue`: the closed form of Lindley's recursion."""
    level = queue + np.cumsum(growth)
    return np.asarray(level - np.minimum(np.minimum.accumulate(level), 0.0))


def hopeless_after(planned: PlannedTrial, counters: Counters, interval: float) -> int | None:
    """Return the ticks after which the harness gives the trial up (bench.analysis.hopeless_backlog), or None."""
    settled = round(planned.settle / TICK_S)
    if interval == 0:
        settled = max(settled, _filled(counters, settled))
    backlog = (counters.offered - counters.processed)[settled:]
    elapsed = np.arange(1, len(backlog) + 1) * TICK_S
    limits = max_growth(elapsed, planned.rate, interval)
    if len(backlog) == 0 or float(backlog.max() - backlog.min()) <= limits.min():
        return None
    early = np.minimum.accumulate(backlog)[((elapsed / 3) / TICK_S).astype(int)]
    span = min(len(backlog), round(recent_seconds(interval) / TICK_S))
    recent = np.lib.stride_tricks.sliding_window_view(backlog, span).min(axis=1)
    grown = recent - early[span - 1 :] > limits[span - 1 :]
    if interval == 0:
        grown &= ~_may_recover(counters.processed[settled:], backlog, span)
    hopeless = np.flatnonzero(grown)
    return settled + span + int(hopeless[0]) if len(hopeless) else None


def _filled(counters: Counters, settled: int) -> int:
    """Return the tick from which on the backlog of a continuous system tells (bench.analysis.first_result)."""
    done, due = (np.flatnonzero(column > 0) for column in (counters.processed, counters.offered))
    if len(done) == 0:
        return settled + round(MAX_WAIT_S / TICK_S)
    return int(FILL_FACTOR * max(0, done[0] - 1 - due[0])) if len(due) else settled


def _may_recover(processed: Ticks, backlog: Ticks, span: int) -> NDArray[np.bool_]:
    """Return, from the end of the first span on, whether a system stands still for the moment, or works off backlog."""
    ticks = np.arange(len(processed))
    moved = np.maximum.accumulate(np.where(np.diff(processed, prepend=-1.0) > 0, ticks, 0))
    still = (ticks - moved)[span - 1 :]
    most = np.lib.stride_tricks.sliding_window_view(backlog, span).max(axis=1)
    recovers: NDArray[np.bool_] = (backlog[span - 1 :] < FALLING_SHARE * most) | (
        (still > span) & (still < MAX_WAIT_S / TICK_S)
    )
    return recovers


def measurement_of(
    planned: PlannedTrial, counters: Counters, interval: float, *, ended: EndReason, ticks: int
) -> Measurement:  # fmt: skip
    """Return the measurement of a trial whose load lasted for `ticks`."""
    offered = int(counters.offered[ticks - 1])
    sent_by_then = float(counters.sent[ticks - 1])
    return Measurement(
        planned=planned, started="", ended=ended, batch_interval=interval,
        seconds=len(counters.at) * TICK_S,
        offered=offered,
        sent=int(counters.sent[-1]),
        failed=0,
        processed=int(counters.processed[-1]),
        lost=0, duplicated=0, out_of_order=0, corrupted=0, drained=False,
        late=max(0.0, offered - sent_by_then) / planned.rate,
        blocked=0.0, cpu_requested_s=0.0, cpu_used_s=0.0,
        series=_series(counters), load_s=ticks * TICK_S,
    )  # fmt: skip


def _series(counters: Counters) -> Series:
    keep: NDArray[np.bool_] = np.diff(counters.processed, prepend=0.0) != 0
    keep[:: THINNING if len(counters.at) * TICK_S > MAX_FULL_SERIES_S else 1] = True
    columns = (
        column[keep].astype(np.int64).tolist() for column in (counters.offered, counters.sent, counters.processed)
    )
    return Series(counters.at[keep].tolist(), *columns)


def drain_seconds(measurement: Measurement, drain: float, time_left: float) -> float:
    """Return for how many seconds the harness waits for a drain, without two batch intervals.

    Args:
        measurement: At the end of the load.
        drain: The deadline, in seconds.
        time_left: Of the search, in seconds from the trial's begin.
    """
    return min(drain, worth_waiting(measurement, Rules(), RESTART_S, time_left - measurement.seconds))


def with_drain(measurement: Measurement, *, empty: bool, purged: bool) -> Measurement:
    """Return the measurement with the outcome of its drain: all processed, or the rest dropped on purpose, or lost."""
    if empty:
        return replace(measurement, drained=True, processed=measurement.sent)
    if purged:
        return replace(measurement, purged=True)
    return replace(measurement, lost=max(0, measurement.sent - measurement.processed))
