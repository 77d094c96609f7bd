"""A simulated system: a fluid queue with a known ceiling that makes trials as the harness does, without taking any time.

Specification: the project's max-rate-search reference, section 9.1. A trial is computed in one vectorised pass: the queue is the
sum of what came in less what could go out, lifted by its lowest point so far (Lindley's recursion).
"""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from bench.model.measurement import EndReason, Measurement, PlannedTrial, Series
from bench.simulation.capacity import TICK, Capacity, Ticks, Traits
from bench.simulation.faults import Counters, Faults

EMPTY = 0.5
"""A shorter queue, in messages, is drained."""
RESTART = 30.0
HOPELESS_LOSS, HOPELESS_MESSAGES = 0.25, 10.0
"""When the harness gives a trial up (bench.runner.trial)."""
THIN_OVER, THIN_TO = 120.0, 5
"""Of longer trials only every so-manieth row is kept, besides those in which something was processed."""


class Flow(Struct, frozen=True):
    """What flowed in a number of ticks: came in and left in total by the end of each tick, and what was queued then."""

    came: Ticks
    left: Ticks
    queue: Ticks

    def first(self, count: int) -> "Flow":
        return Flow(self.came[:count], self.left[:count], self.queue[:count])

    def then(self, later: "Flow") -> "Flow":
        came, left = self.came[-1] if len(self.came) else 0.0, self.left[-1] if len(self.left) else 0.0
        return Flow(*(np.concatenate(pair) for pair in (
            (self.came, later.came + came), (self.left, later.left + left), (self.queue, later.queue))))  # fmt: skip


class Fluid:
    """One run of a system; its clock moves only with its trials."""

    def __init__(self, traits: Traits, faults: Faults, seed: int, *, drains: bool = True) -> None:
        self.traits, self.clock = traits, 0
        self._faults, self._drains, self._born, self._queue = faults, drains, 0, 0.0
        self._capacity = Capacity(traits, seed)

    @property
    def seconds(self) -> float:
        """How long the system has been busy with this cell."""
        return self.clock * TICK

    def restart(self) -> None:
        """A fresh, cold system."""
        self.clock += round(RESTART / TICK)
        self._born, self._queue = self.clock, 0.0

    def trial(self, planned: PlannedTrial, drain: float) -> Measurement:
        """What the harness would have seen of a trial; `drain` is the deadline of the drain in seconds."""
        begun, count = self.clock, round((planned.settle + planned.window) / TICK)
        flow = self._flow(0.0 if self._faults.rejects else min(planned.rate, self.traits.generator), count, self._queue)
        carried = self._queue
        ended, ticks = self._ending(planned, self._counters(planned, flow, begun, carried), begun)
        flow = flow.first(ticks)
        self.clock, self._queue = begun + ticks, float(flow.queue[-1])
        if ended in ("complete", "hopeless") and self._drains:
            flow = flow.then(self._drained(drain + 2 * self.traits.batch_interval))
        self.clock = begun + len(flow.came)
        empty = ended != "framework died" and (self._queue <= EMPTY or not self._drains)
        self._queue = self._queue if self._queue > EMPTY else 0.0
        counters = self._counters(planned, flow, begun, carried)
        seen = _measurement(planned, counters, self.traits.batch_interval, ended=ended, ticks=ticks)
        return self._faults.accounted(_settled(seen, empty=empty), begun * TICK)

    def _flow(self, rate: float, count: int, queue: float) -> Flow:
        """The next ticks at that rate, from that queue on."""
        capacity = self._capacity.over(self.clock, count, self._born) * TICK
        came = np.full(count, rate * TICK)
        limit = self.traits.collapse_after * self.traits.ceiling
        queued = _queue_of(came - capacity, queue)
        if self.traits.collapse_loss and max(queue, float(queued.max(initial=0.0))) > limit:
            queued = self._collapsing(came, capacity, queue, limit)
        total = np.cumsum(came)
        return Flow(total, total + queue - queued, queued)

    def _collapsing(self, came: Ticks, capacity: Ticks, queue: float, limit: float) -> Ticks:
        """The queue of a system that slows down while its queue is long; computed from change to change."""
        parts, at, count = [], 0, len(came)
        while at < count:
            slow = queue > limit
            part = _queue_of(came[at:] - capacity[at:] * (1 - self.traits.collapse_loss * slow), queue)
            changed = np.flatnonzero((part > limit) != slow)
            part = part[: int(changed[0]) + 1] if len(changed) else part
            parts.append(part)
            at, queue = at + len(part), float(part[-1])
        return np.concatenate(parts)

    def _drained(self, deadline: float) -> Flow:
        """Nothing more comes in until the queue is empty and what has left is seen to have left, or the deadline is over."""
        longest, flow = round(deadline / TICK), Flow(np.empty(0), np.empty(0), np.empty(0))
        while len(flow.queue) < longest and self._queue > EMPTY:
            count = min(longest - len(flow.queue), 10 + int(1.5 * self._queue / (self.traits.ceiling * TICK)))
            part = self._flow(0.0, count, self._queue)
            empty = np.flatnonzero(part.queue <= EMPTY)
            part = part.first(int(empty[0]) + 1) if len(empty) else part
            flow = flow.then(part)
            self.clock, self._queue = self.clock + len(part.queue), float(part.queue[-1])
        return flow.then(self._flow(0.0, self._ticks_until_seen(), self._queue))

    def _ticks_until_seen(self) -> int:
        """How many ticks from now on until everything that has left is counted as processed."""
        batch = round(self.traits.batch_interval / TICK)
        hidden = round(self._faults.hidden_until(self.clock * TICK) / TICK) - self.clock
        if not batch:
            return hidden + int(self.traits.latency / TICK) + 1
        return (-(-(self.clock + hidden) // batch) + 1) * batch - self.clock

    def _counters(self, planned: PlannedTrial, flow: Flow, begun: int, carried: float) -> Counters:
        """The counters at the end of each tick, as whole messages; what an earlier trial left behind leaves first, uncounted."""
        at = (np.arange(1, len(flow.came) + 1) * TICK).astype(np.float64)
        due = np.minimum(planned.rate * at, planned.rate * (planned.settle + planned.window)).astype(np.float64)
        seen = np.maximum(self._seen(flow.left, begun) - carried, 0.0).astype(np.float64)
        return self._faults.applied(Counters(at, _whole(due), _whole(flow.came), _whole(seen)), begun * TICK)

    def _seen(self, left: Ticks, begun: int) -> Ticks:
        """What is counted as processed: with the latency, or once the batch after it is complete."""
        batch = round(self.traits.batch_interval / TICK)
        before = np.concatenate([[0.0], np.maximum.accumulate(left)])  # sums of many floats may step back by a hair
        if batch:
            places = (np.arange(1, len(left) + 1) + begun) // batch * batch - batch - begun
            return np.asarray(before[np.maximum(places, 0)])
        whole, part = divmod(self.traits.latency / TICK, 1.0)
        places = np.arange(1, len(left) + 1) - int(whole)
        now, earlier = before[np.maximum(places, 0)], before[np.maximum(places - 1, 0)]
        return np.asarray(now - part * (now - earlier))

    def _ending(self, planned: PlannedTrial, counters: Counters, begun: int) -> tuple[EndReason, int]:
        """How the offering ends, and after how many ticks."""
        whole = len(counters.at)
        given_up = _hopeless_after(planned, counters, self.traits.batch_interval)
        dead = self._faults.dies_after(planned.rate, begun * TICK, whole * TICK)
        if dead is not None and round(dead / TICK) <= (given_up or whole):
            return "framework died", max(1, round(dead / TICK))
        return ("hopeless", given_up) if given_up else ("complete", whole)


def _whole(count: Ticks) -> Ticks:
    return np.asarray(np.floor(count + 0.5), dtype=np.float64)


def _queue_of(growth: Ticks, queue: float) -> Ticks:
    level = queue + np.cumsum(growth)
    return np.asarray(level - np.minimum(np.minimum.accumulate(level), 0.0))


def _hopeless_after(planned: PlannedTrial, counters: Counters, interval: float) -> int | None:
    """The ticks after which the harness gives up: the backlog of late has outgrown the early one by a quarter of what was due."""
    settled = round(planned.settle / TICK)
    backlog = (counters.offered - counters.processed)[settled:]
    least = HOPELESS_LOSS * planned.rate * max(2.0, 3 * interval) + HOPELESS_MESSAGES
    if len(backlog) == 0 or float(backlog.max() - backlog.min()) <= least:
        return None
    elapsed = np.arange(1, len(backlog) + 1) * TICK
    early = np.minimum.accumulate(backlog)[((elapsed / 3) / TICK).astype(int)]
    span = min(len(backlog), round(max(0.5, 1.5 * interval) / TICK))
    lately = np.lib.stride_tricks.sliding_window_view(backlog, span).min(axis=1)
    grown, elapsed = lately - early[span - 1 :], elapsed[span - 1 :]
    given_up = (elapsed >= max(2.0, 3 * interval)) & (
        grown > HOPELESS_LOSS * planned.rate * elapsed + HOPELESS_MESSAGES
    )
    found = np.flatnonzero(given_up)
    return settled + span + int(found[0]) if len(found) else None


def _measurement(
    planned: PlannedTrial, counters: Counters, interval: float, *, ended: EndReason, ticks: int
) -> Measurement:  # fmt: skip
    """The numbers of a trial that was offered for so many ticks."""
    offered = int(planned.rate * ticks * TICK + 0.5)
    sent_by_then = float(counters.sent[ticks - 1])
    return Measurement(
        planned=planned, started="", ended=ended, batch_interval=interval,
        seconds=len(counters.at) * TICK,
        offered=offered,
        sent=int(counters.sent[-1]),
        failed=0,
        processed=int(counters.processed[-1]),
        lost=0, duplicated=0, out_of_order=0, corrupted=0, drained=False,
        late=max(0.0, offered - sent_by_then) / planned.rate,
        blocked=0.0, cpu_requested_s=0.0, cpu_used_s=0.0,
        series=_series(counters),
    )  # fmt: skip


def _series(counters: Counters) -> Series:
    keep: NDArray[np.bool_] = np.diff(counters.processed, prepend=0.0) != 0
    keep[:: THIN_TO if len(counters.at) * TICK > THIN_OVER else 1] = True
    whole = (column[keep].astype(np.int64).tolist() for column in (counters.offered, counters.sent, counters.processed))
    return Series(counters.at[keep].tolist(), *whole)


def _settled(seen: Measurement, *, empty: bool) -> Measurement:
    """The measurement with what its end says: drained, so that everything sent was processed, or not."""
    if empty:
        return replace(seen, drained=True, processed=seen.sent)
    return replace(seen, lost=max(0, seen.sent - seen.processed))
