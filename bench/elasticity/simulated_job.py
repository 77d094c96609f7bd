"""A simulated job: a deterministic fluid model of operators, their instances and their sources, with seeded noise.

Queues within a job are short against an interval, so its slowest instance sets the flow at once (the fluid limit of
buffers that fill up and hold back whatever is before them). What a job does not take waits at a durable source, such as
a log. A source that is not durable stops: this is Heron, where one full buffer stops all spouts of a topology. Sources
that stop and go are averaged: they stop for the share of the time by which the load is too high.

Model, not measurement: useful time is exact, records are divisible, and there is no latency besides the backlog.
"""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bench.elasticity.dataflow import Dataflow
from bench.elasticity.samples import InstanceSample, Parallelism, Sample

Values = NDArray[np.float64]
SATURATED = 1 - 1e-9
"""Share of its capacity from which on an instance is saturated."""


class SimulatedOperator(Struct, frozen=True):
    """The properties of an operator."""

    rate: float
    """records/s of useful time that one instance alone processes"""
    selectivity: float = 1.0
    """records emitted for each one processed"""
    scaling: float = 1.0
    """exponent: p instances together process rate x p ** scaling"""
    hot: float = 1.0
    """records that the first instance gets, relative to each other one: 1 is without skew"""
    slow: float = 1.0
    """rate of the first instance, relative to each other one"""

    def rates(self, instances: int) -> Values:
        """Return the records/s of useful time of each instance."""
        each = np.full(instances, self.rate * instances ** (self.scaling - 1))
        each[0] *= self.slow
        return each

    def shares(self, instances: int) -> Values:
        """Return the share of the operator's records that each instance gets."""
        weights = np.ones(instances)
        weights[0] = self.hot
        return np.asarray(weights / weights.sum())


class SimulatedJob(Struct, frozen=True):
    """A job whose true rates are known."""

    dataflow: Dataflow
    operators: Mapping[str, SimulatedOperator]
    durable: bool = True
    """whether its sources keep what it does not take"""
    rescale_s: float = 0.0
    """seconds after a change in which it takes nothing"""
    noise: float = 0.0
    """standard deviation of ln(rate) of an operator, all of its instances alike, from one interval to another"""
    full_queue: float = 1e4
    """records that wait before an instance which is the limit"""

    def instance_loads(self, parallelism: Parallelism, offered: Mapping[str, float]) -> dict[str, Values]:
        """Return the records/s that reach each instance of each operator while the sources send so many."""
        emitted, loads = dict(offered), dict[str, Values]()
        for name in self.dataflow.operators:
            arriving, operator = sum(emitted[read] for read in self.dataflow.upstream[name]), self.operators[name]
            loads[name] = arriving * operator.shares(parallelism[name])
            emitted[name] = arriving * operator.selectivity
        return loads


class JobSimulation:
    """A running simulated job; its clock advances interval by interval."""

    def __init__(self, job: SimulatedJob, parallelism: Parallelism, seed: int = 0) -> None:
        self._job, self.parallelism, self.clock = job, dict(parallelism), 0.0
        self._random, self._pause = np.random.default_rng(seed), 0.0
        self._backlog = dict.fromkeys(job.dataflow.sources, 0.0)

    def rescale(self, parallelism: Parallelism) -> None:
        """Change the instances; the job pauses if any number is another one."""
        if dict(parallelism) != self.parallelism:
            self.parallelism, self._pause = dict(parallelism), self._job.rescale_s

    def advance(self, seconds: float, offered: Mapping[str, float]) -> Sample:
        """Run the job for an interval.

        Args:
            seconds: Length of the interval.
            offered: Records/s that are due at each source.
        """
        job, paused = self._job, min(self._pause, seconds)
        active, self._pause, self.clock = seconds - paused, self._pause - paused, self.clock + seconds
        due_s = seconds if job.durable else active
        waiting = {name: self._backlog[name] + rate * due_s for name, rate in offered.items()}
        rates = {name: self._noisy(job.operators[name].rates(count)) for name, count in self.parallelism.items()}
        wanted = {name: records / active if active > 0 else 0.0 for name, records in waiting.items()}
        loads = job.instance_loads(self.parallelism, wanted)
        headrooms = {name: _headroom(rates[name], load) for name, load in loads.items()}
        limit = min(headrooms, key=headrooms.__getitem__)
        share = min(1.0, headrooms[limit])
        taken = {name: share * rate * active for name, rate in wanted.items()}
        kept = 0.0 if not job.durable else 1 - share if active > 0 else 1.0
        self._backlog = {name: kept * records for name, records in waiting.items()}
        stopped = {limit: (1 - share) * active}
        operators = {
            name: self._instances(name, rates[name], share * loads[name], active, stopped.get(name, 0.0))
            for name in job.dataflow.operators
        }
        rate_taken = {name: records / seconds for name, records in taken.items()}
        return Sample(self.clock, seconds, dict(offered), rate_taken, operators, dict(self._backlog))

    def _noisy(self, rates: Values) -> Values:
        return np.asarray(rates * np.exp(self._job.noise * self._random.standard_normal()))

    def _instances(
        self, name: str, rates: Values, loads: Values, active: float, stopped: float
    ) -> tuple[InstanceSample, ...]:
        """Return the work of the instances of an operator.

        Args:
            name: The operator.
            rates: Records/s of useful time of each instance.
            loads: Records/s that each of them processes.
            active: Seconds in which the job ran.
            stopped: Seconds in which this operator stopped the sources.
        """
        busiest, selectivity = int(np.argmax(loads / rates)), self._job.operators[name].selectivity
        full = self._job.full_queue * (stopped > 0)
        return tuple(
            InstanceSample(
                processed=float(load * active),
                emitted=float(load * active * selectivity),
                useful_s=float(load * active / rate),
                backpressure_s=float(stopped) if index == busiest else 0.0,
                queued=float(full) if load >= SATURATED * rate else 0.0,
            )
            for index, (rate, load) in enumerate(zip(rates, loads, strict=True))
        )


def _headroom(rates: Values, loads: Values) -> float:
    """Return the multiple of the loads that the first instance to be saturated can process; infinite without load."""
    return float(np.min(rates[loads > 0] / loads[loads > 0], initial=np.inf))
