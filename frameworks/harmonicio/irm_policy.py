"""The policy `irm`: PEs as HarmonicIO's resource manager requests and ends them, and the workers that it packs them on.

The rules are the engine's own (frameworks/harmonicio/engine/irm); here they read samples instead of a master's queues.
PEs are added as queues grow, a few at a time. Nothing removes them but their own end after an idle time.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from bench.elasticity.dataflow import Dataflow
from bench.elasticity.policy import Plan, PolicyPlugin
from bench.elasticity.samples import Parallelism, Sample, samples_since_change
from bench.units import Seconds
from frameworks.harmonicio.engine.irm.autoscaler import target_workers
from frameworks.harmonicio.engine.irm.packing import Packing, Rule
from frameworks.harmonicio.engine.irm.parameters import PROFILES
from frameworks.harmonicio.engine.irm.predictor import growth, pes_to_add


class IrmSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of `irm`."""

    parameters: Literal["paper", "shipped"] = "paper"
    """Which of the two published sets"""
    packer: Rule = "first-fit"
    worker_cores: Annotated[int, Meta(ge=1)] = 8
    """Cores of a worker; a PE uses one at most"""
    idle_timeout: Seconds = Seconds(60)
    """After which a PE without work ends"""


class Irm:
    """The policy for one dataflow; each operator is an image."""

    def __init__(self, settings: IrmSettings, dataflow: Dataflow) -> None:
        self._settings, self._dataflow = settings, dataflow
        self._parameters = PROFILES[settings.parameters]

    def decide(self, samples: Sequence[Sample], running: Parallelism) -> Plan:
        """Return the instances to run next; those that run where nothing should change."""
        since = samples_since_change(samples, running)
        waits = len(since) < len(samples) and _span(since) <= self._parameters.scaleup_waiting_time
        planned, reasons = dict(running), list[str]()
        for name in self._dataflow.operators:
            length, rate = self._queue(name, samples[-1]), self._growth(name, samples)
            more = 0 if waits else pes_to_add(rate, int(length), self._parameters)
            idle = 0 if more else self._idle_pes(name, since)
            planned[name] += more - idle
            if more or idle:
                done = f"{more} more PEs" if more else f"{idle} idle PEs end"
                reasons.append(f"{length:.0f} records wait for {name}, {rate:+d}/s: {done}")
        reasons = reasons or ["no queue asks for more PEs"]
        return Plan(planned, "; ".join([*reasons, self._placed(planned, samples[-1])]))

    def _queue(self, name: str, sample: Sample) -> float:
        """Return the records that wait before an operator, at its sources, too."""
        at_sources = sum(sample.backlog.get(read, 0.0) for read in self._dataflow.upstream[name])
        return at_sources + sum(one.queued for one in sample.operators[name])

    def _growth(self, name: str, samples: Sequence[Sample]) -> int:
        """Return the growth of an operator's queue since the sample before, in whole records/s.

        That is longer ago than an interval where a change was under way.
        """
        last, before = samples[-1], samples[-2] if len(samples) > 1 else None
        queued = int(self._queue(name, before)) if before is not None else None
        return growth(int(self._queue(name, last)), queued, last.at - before.at if before is not None else last.seconds)

    def _idle_pes(self, name: str, since: Sequence[Sample]) -> int:
        """Return the PEs that had no work for the idle time; one stays.

        The dispatcher gives a record to the PE that is free: those that the busiest interval did not need were idle.
        """
        if not since or _span(since) < self._settings.idle_timeout:
            return 0
        seen = [sample for sample in since if sample.at > since[-1].at - self._settings.idle_timeout]
        pes = len(seen[-1].operators[name])
        return pes - min(pes, max(1, math.ceil(max(sample.busy(name) for sample in seen) * pes - 1e-9)))

    def _placed(self, planned: Parallelism, sample: Sample) -> str:
        """Return how many workers the PEs need, by their measured size, in words."""
        packing = Packing("leq", rule=self._settings.packer)
        for name, pes in planned.items():
            size = sample.busy(name) / self._settings.worker_cores or self._parameters.default_cpu_share
            size = min(1.0, max(self._parameters.minimum_cpu_size, size))
            for number in range(pes):
                packing.put((name, number), size)
        bins, rule = len(packing.bins), self._settings.packer
        return f"{sum(planned.values())} PEs on {bins} workers by {rule}, {target_workers(bins)} with idle ones"


def _span(samples: Sequence[Sample]) -> float:
    """Return the seconds that samples cover."""
    return samples[-1].at - samples[0].begin if samples else 0.0


plugin = PolicyPlugin(settings=IrmSettings, make=Irm)
