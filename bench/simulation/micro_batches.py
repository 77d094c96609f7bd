"""A simulated system that works in batches of a fixed cost, which grow (pull) or queue up (receiver) when it is late.

A batch of n messages is work of `fixed_cost` seconds and n messages at the capacity of its time. A pull engine
(Spark's Structured Streaming) takes whatever waits when the batch before has ended, or at the next multiple of the
interval if that is later. A receiver (Spark's DStreams) cuts a batch at each multiple of the interval.
"""

import math
from collections.abc import Generator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from bench.model.measurement import Batches, EndReason, Measurement, PlannedTrial
from bench.simulation.capacity import TICK_S, Capacity, Ticks, Traits
from bench.simulation.faults import Counters
from bench.simulation.fluid import MIN_SHARE, RESTART_S, drain_seconds, hopeless_after, measurement_of, with_drain

MIN_BATCH = 1e-6
"""Messages below which nothing waits."""


class _Batch(Struct, frozen=True):
    """A completed batch: seconds since the trial's begin, and messages."""

    begin: float
    end: float
    messages: float


class MicroBatches:
    """One run of a system that works in batches; its clock advances only by trials and restarts."""

    def __init__(self, traits: Traits, seed: int, *, age: float = 0.0) -> None:
        """Take up a system that was under load for `age` seconds."""
        self.traits, self.clock, self._started = traits, 0, -round(age / TICK_S)
        self._capacity = Capacity(traits, seed)

    @property
    def seconds(self) -> float:
        """The time of the system's clock."""
        return self.clock * TICK_S

    def restart(self) -> None:
        """Replace the system by a cold one; takes RESTART_S."""
        self.clock += round(RESTART_S / TICK_S)
        self._started = self.clock

    def run_trial(self, planned: PlannedTrial, drain: float, time_left: float = math.inf) -> Measurement:
        """Run a trial and return the harness's measurement of it.

        Args:
            planned: The trial.
            drain: Deadline of the drain in seconds, to which two batch intervals are added.
            time_left: Of the search, in seconds from the trial's begin.
        """
        interval, load = self.traits.batch_interval, round((planned.settle + planned.window) / TICK_S)
        count = load + round((drain + 2 * interval) / TICK_S)
        ended: EndReason = "complete"
        batches = self._batches(planned, load, count)
        counters = self._counters(planned, batches, load, load)
        hopeless = hopeless_after(planned, counters, interval)
        if hopeless is not None and hopeless < load:
            ended, load = "hopeless", hopeless
            count = load + round((drain + 2 * interval) / TICK_S)
            batches = self._batches(planned, load, count)
            counters = self._counters(planned, batches, load, load)
        wait = drain_seconds(measurement_of(planned, counters, interval, ended=ended, ticks=load), drain, time_left)
        count = load + round((wait + 2 * interval) / TICK_S)
        batches = [batch for batch in batches if batch.end <= count * TICK_S]
        offered = min(planned.rate, self.traits.generator) * load * TICK_S
        done = sum(batch.messages for batch in batches) >= offered - 1
        last = batches[-1].end if batches and done else count * TICK_S
        ticks = max(load, int(np.ceil(last / TICK_S)) + 1)
        counters = self._counters(planned, batches, load, ticks)
        measurement = measurement_of(planned, counters, interval, ended=ended, ticks=load)
        settled = min(round(planned.settle / TICK_S), load - 1)
        cpu = self._capacity.cpu_beside(self.clock + settled, load - settled)
        measurement = replace(measurement, warm_s=(self.clock - self._started) * TICK_S, cpu=cpu)
        self.clock += ticks
        if self.traits.reports_batches:
            measurement = replace(measurement, batches=_columns(batches))
        return with_drain(measurement, empty=done, purged=wait < drain)

    def _batches(self, planned: PlannedTrial, load: int, count: int) -> list[_Batch]:
        """Return the batches that are completed within `count` ticks, when the load ends after `load` ticks."""
        traits = self.traits
        rate = min(planned.rate, traits.generator)
        speed = self._capacity.rates(self.clock, count, self._started)
        under_load = np.arange(count) < load
        speed = np.maximum(speed - traits.shared * rate * under_load, MIN_SHARE * traits.mean_capacity)
        edges = np.arange(count + 1) * TICK_S
        work = np.concatenate([[0.0], np.cumsum(speed * TICK_S)])
        pauses = traits.truth * (1 + traits.shared) / traits.mean_capacity
        fixed_share = traits.fixed_cost / traits.batch_interval
        fixed = traits.fixed_cost * traits.mean_capacity * pauses / (1 - fixed_share)
        batches: list[_Batch] = []
        arrived: Ticks = np.asarray(rate * np.minimum(edges, load * TICK_S), dtype=np.float64)
        if traits.intake < np.inf:
            taken = traits.intake * np.concatenate([[0.0], np.cumsum(speed * TICK_S)])
            arrived = taken + np.minimum.accumulate(arrived - taken)
        cuts = self._cuts(np.asarray(edges, dtype=np.float64), arrived)
        cut = next(cuts, None)
        while cut is not None:
            formed, messages = cut
            begin = max(formed, batches[-1].end if batches else 0.0)
            target = float(np.interp(begin, edges, work)) + fixed + messages
            if target >= work[-1]:
                break
            end = float(np.interp(target, work, edges))
            batches.append(_Batch(begin, end, messages))
            try:
                cut = cuts.send(end)
            except StopIteration:
                break
        return batches

    def _cuts(self, edges: Ticks, arrived: Ticks) -> Generator[tuple[float, float], float, None]:
        """Yield when each batch is formed and its messages; receives when that batch has ended.

        Args:
            edges: Seconds since the trial's begin.
            arrived: Messages that have reached the system by then.
        """
        interval, offset = self.traits.batch_interval, (self.clock * TICK_S) % self.traits.batch_interval
        taken, at = 0.0, interval - offset
        while at < edges[-1]:
            waiting, ended = float(np.interp(at, edges, arrived)) - taken, 0.0
            if waiting < MIN_BATCH and taken + waiting > arrived[-1] - MIN_BATCH:
                return
            if waiting >= MIN_BATCH:
                taken += waiting
                ended = yield at, waiting
            following = at + interval
            if self.traits.reader == "pull" and ended > following:
                following = ended
            at = following

    def _counters(self, planned: PlannedTrial, batches: list[_Batch], load: int, ticks: int) -> Counters:
        at = np.asarray(np.arange(1, ticks + 1) * TICK_S, dtype=np.float64)
        due = np.minimum(planned.rate * at, planned.rate * load * TICK_S)
        sent = np.minimum(due, self.traits.generator * at)
        ends = np.array([batch.end for batch in batches])
        total = np.concatenate([[0.0], np.cumsum([batch.messages for batch in batches])])
        processed = total[np.searchsorted(ends, at, side="right")]
        return Counters(at, np.floor(due + 0.5), np.floor(sent + 0.5), np.floor(processed + 0.5))


def _columns(batches: list[_Batch]) -> Batches:
    return Batches(
        [batch.begin for batch in batches],
        [batch.end for batch in batches],
        [round(batch.messages) for batch in batches],
    )
