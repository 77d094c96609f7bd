"""The policy `threshold`: more instances of an operator that is busy, fewer of one that is idle."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from bench.elasticity.dataflow import Dataflow
from bench.elasticity.policy import Plan, PolicyPlugin
from bench.elasticity.samples import Parallelism, Sample, samples_since_change
from bench.errors import UsageError
from bench.units import Seconds, Share


class ThresholdSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of `threshold`."""

    above: Share = Share(0.8)
    """Busy share of an operator's time, above which it gets more instances"""
    below: Share = Share(0.3)
    """Busy share below which it gets fewer"""
    step: Annotated[int, Meta(ge=1)] = 1
    """Instances at a time"""
    cooldown: Seconds = Seconds(0)
    """After a change, in which nothing is changed"""


class Threshold:
    """The policy for one dataflow."""

    def __init__(self, settings: ThresholdSettings, dataflow: Dataflow) -> None:
        if not settings.below < settings.above:
            raise UsageError(f"threshold: below ({settings.below:.0%}) is not less than above ({settings.above:.0%})")
        self._settings, self._dataflow = settings, dataflow

    def decide(self, samples: Sequence[Sample], running: Parallelism) -> Plan:
        """Return the instances to run next; those that run where nothing should change."""
        settings = self._settings
        since = samples_since_change(samples, running)
        changed = len(since) < len(samples)
        if not since or (changed and since[-1].at - since[0].begin < settings.cooldown - 1e-9):
            return Plan(running, f"waits until {settings.cooldown:g} s after the last change")
        planned, reasons = dict(running), list[str]()
        for name in self._dataflow.operators:
            busy = since[-1].busy(name)
            if busy > settings.above:
                planned[name] += settings.step
                reasons.append(f"{name} is busy for {busy:.0%} of its time, more than {settings.above:.0%}")
            elif busy < settings.below and running[name] > 1:
                planned[name] = max(1, running[name] - settings.step)
                reasons.append(f"{name} is busy for {busy:.0%} of its time, less than {settings.below:.0%}")
        return Plan(planned, "; ".join(reasons) or "every operator is between its thresholds")


plugin = PolicyPlugin(settings=ThresholdSettings, make=Threshold)
