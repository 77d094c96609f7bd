"""The policy `ds2`: the instances of all operators in one step, from their true rates.

After Kalavri et al. (OSDI 2018). Beyond the paper it has options of Flink's autoscaler, which has the same model, under
the names that they have there; as shipped here they are off, so that the policy is the paper's.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Annotated, Literal

from msgspec import Meta, Struct

from bench.elasticity.dataflow import Dataflow
from bench.elasticity.parallelism import observed_scalability, required_instances, round_up
from bench.elasticity.policy import Plan, PolicyPlugin
from bench.elasticity.samples import (
    Aggregator,
    OperatorRates,
    Parallelism,
    Sample,
    samples_since_change,
    split_by_parallelism,
    true_rates,
)
from bench.units import Seconds, Share, limits

RATIO_SLACK = 1e-6
"""Excess over the target-rate ratio that is a rounding error."""


class Ds2Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of `ds2`: the paper's, then those of Flink's autoscaler."""

    warm_up_time: Seconds = Seconds(30)
    """After a change, during which no interval counts"""
    activation_time: Annotated[int, Meta(ge=1, le=1000)] = 1
    """Intervals in a row whose decisions are taken together"""
    activation: Literal["max", "median"] = "max"
    """Their largest decision, or the median"""
    target_rate_ratio: Annotated[float, Meta(ge=1)] = 1.0
    """Ratio of offered to taken from which all decisions are multiplied by it, where no operator needs more instances:
    the job has a cost that useful time does not show"""
    ignored_scale_up: Annotated[int, Meta(ge=0)] = 0
    """Instances; a plan that adds no more to any operator, and removes no more than the next one says, is ignored"""
    ignored_scale_down: Annotated[int, Meta(ge=0)] = 1
    """Likewise, of fewer instances"""
    utilization_target: Annotated[Share, limits(least="1 %")] = Share(1)
    """Share of their time for which instances are to be useful"""
    busy_time_aggregator: Aggregator = "avg"
    """`max`: the busiest instance is the limit, as it is with skew"""
    max_parallelism: Annotated[int, Meta(ge=1)] | None = None
    scale_down_max_factor: Annotated[Share, limits(least="1 %")] = Share(1)
    """Largest share of its instances that an operator loses at once"""
    scale_down_interval: Seconds = Seconds(0)
    """Time since the last change before which no operator loses instances"""
    restart_time: Seconds = Seconds(0)
    """Time that a change takes; what is offered meanwhile is caught up with, too"""
    catch_up_duration: Seconds = Seconds(0)
    """Time in which the backlog is to be processed; 0 s adds no instances for it"""
    scaling_effectiveness_threshold: Share = Share(0)
    """An operator whose last scale-up brought less than this share of what it should have gets no more instances"""
    observed_scalability: bool = False
    """Whether to divide by the share of linear scaling that an operator has shown"""


class Ds2:
    """The policy for one dataflow."""

    def __init__(self, settings: Ds2Settings, dataflow: Dataflow) -> None:
        self._settings, self._dataflow = settings, dataflow

    def decide(self, samples: Sequence[Sample], running: Parallelism) -> Plan:
        """Return the instances to run next; those that run where nothing should change."""
        settings = self._settings
        warm = samples_since_change(samples, running, settings.warm_up_time)
        if len(warm) < settings.activation_time:
            return Plan(running, f"{len(warm)} of {settings.activation_time} intervals since the last change count")
        decisions = [self._needed(sample) for sample in warm[-settings.activation_time :]]
        known = [each for each in decisions if each is not None]
        if len(known) < len(decisions):
            return Plan(running, "an operator has processed nothing, so that its true rate is not known")
        needed = {name: self._combine([each[name] for each in known]) for name in running}
        planned, why = self._plan(needed, samples, running)
        if not _is_worth_it(settings, planned, running):
            return Plan(running, f"{why}: no change")
        return Plan(planned, why)

    def _combine(self, decisions: Sequence[float]) -> float:
        """Return what the decisions of several intervals ask for together."""
        return max(decisions) if self._settings.activation == "max" else median(decisions)

    def _needed(self, sample: Sample) -> dict[str, float] | None:
        """Return the instances that one interval asks for, not rounded; None if a true rate is not known."""
        settings = self._settings
        if not any(sample.offered.values()) and not any(sample.backlog.values()):
            return dict.fromkeys(sample.operators, 0.0)
        rates = dict[str, OperatorRates]()
        for name, instances in sample.operators.items():
            found = true_rates(instances, settings.busy_time_aggregator)
            if found is None:
                return None
            rates[name] = found
        return required_instances(self._dataflow, rates, target_rates(sample, settings))

    def _plan(
        self, needed: Mapping[str, float], samples: Sequence[Sample], running: Parallelism
    ) -> tuple[dict[str, int], str]:
        """Return whole instances within the options, and the sentence for them."""
        ratio = samples[-1].target_rate_ratio
        why = "true rates ask for " + ", ".join(f"{name} {needed[name]:.2f}" for name in running)
        limit = self._settings.target_rate_ratio * (1 + RATIO_SLACK)
        if math.isfinite(ratio) and ratio > limit and all(round_up(needed[name]) <= running[name] for name in running):
            needed = {name: x * ratio for name, x in needed.items()}
            why += f", times {ratio:.2f}: so much more is offered than taken, although nothing needs more"
        planned, groups, notes = dict[str, int](), split_by_parallelism(samples), list[str]()
        for name in running:
            planned[name], note = self._limited(name, needed[name], running[name], groups)
            notes += [note] if note else []
        return planned, "; ".join([why, *notes])

    def _limited(self, name: str, needed: float, now: int, groups: Sequence[Sequence[Sample]]) -> tuple[int, str]:
        """Return the instances of an operator within the options, and which option changed them."""
        settings, planned, note = self._settings, round_up(needed), ""
        if planned > now:
            if settings.observed_scalability:
                share = observed_scalability(_rate_history(name, groups))
                planned, note = round_up(needed / share), f"{name} scaled by {share:.0%} so far" if share < 1 else ""
            if _is_ineffective(name, groups, settings.scaling_effectiveness_threshold):
                return now, f"{name} stays, since its last scale-up was not effective"
            most = settings.max_parallelism
            return (planned, note) if most is None or planned <= most else (max(now, most), f"{name} is at its limit")
        since = groups[-1][-1].at - groups[-1][0].begin
        if planned < now and since < settings.scale_down_interval:
            return now, f"{name} is not reduced within {settings.scale_down_interval:g} s of a change"
        return max(planned, round_up(now * (1 - settings.scale_down_max_factor))), ""


def target_rates(sample: Sample, settings: Ds2Settings) -> dict[str, float]:
    """Return the records/s of each source for which there shall be instances.

    Those that are offered, at the target utilization, and those that work off the backlog in time, at any, as Flink's
    autoscaler has it.
    """
    within, restart, utilization = settings.catch_up_duration, settings.restart_time, settings.utilization_target
    rates = {name: rate / utilization for name, rate in sample.offered.items()}
    if within <= 0:
        return rates
    late = {name: sample.backlog.get(name, 0.0) + rate * restart for name, rate in sample.offered.items()}
    return {name: rate + late[name] / within for name, rate in rates.items()}


def _is_worth_it(settings: Ds2Settings, planned: Parallelism, running: Parallelism) -> bool:
    """Return True if any operator changes by more instances than are ignored; then all of them change."""
    changes = [planned[name] - running[name] for name in running]
    return any(change > settings.ignored_scale_up or -change > settings.ignored_scale_down for change in changes)


def _rate_history(name: str, groups: Sequence[Sequence[Sample]]) -> list[tuple[int, float]]:
    """Return the instances of an operator and its true rate in the last interval of each group that shows one."""
    found = [(len(group[-1].operators[name]), true_rates(group[-1].operators[name])) for group in groups]
    return [(instances, rates.processing) for instances, rates in found if rates is not None]


def _is_ineffective(name: str, groups: Sequence[Sequence[Sample]], threshold: float) -> bool:
    """Return True if the last change added instances, and less than a share of the true rate that they should bring."""
    history = _rate_history(name, groups[-2:])
    if threshold <= 0 or len(history) < 2:
        return False
    (before, rate_before), (after, rate_after) = history
    return after > before and rate_after / rate_before - 1 < threshold * (after / before - 1)


plugin = PolicyPlugin(settings=Ds2Settings, make=Ds2)
