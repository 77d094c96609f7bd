"""The policy `dhalion`: symptoms, a diagnosis, and one operator that gets more instances.

After Floratou et al., "Dhalion: self-regulating stream processing in Heron" (VLDB 2017), with the constants of its
published code. The blacklist and the scale-down are of the paper, not of the code; the scale-down is off as shipped.
"""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct

from bench.elasticity.dataflow import Dataflow
from bench.elasticity.policy import Plan, PolicyPlugin
from bench.elasticity.samples import InstanceSample, Parallelism, Sample, samples_since_change, split_by_parallelism
from bench.units import Seconds, Share

Diagnosis = Literal["under-provisioned", "slow instance", "data skew", "none"]
MIN_SLOPE_SAMPLES = 3
MAX_BACKPRESSURE_MS = 999.0
"""Of a second, for the scale factor."""
ROUNDING_SLACK = 1e-6
"""Excess over a whole number of instances that is a rounding error."""
MIN_GAIN = 0.01
"""Share by which a scale-up must raise the rate that the job takes, or it is blacklisted."""


class DhalionSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of `dhalion`."""

    cooldown: Seconds = Seconds(180)
    """After a change, in which nothing is diagnosed"""
    history: Seconds = Seconds(1800)
    """After which samples, and what they blacklist, are forgotten"""
    noise_ms: Annotated[float, Meta(ge=0)] = 20.0
    """Milliseconds of back-pressure in a second that an operator may have"""
    queue_size: Annotated[float, Meta(ge=0)] = 1000.0
    """Records that wait before an instance on average, from which on a queue is large"""
    queue_growth: Annotated[float, Meta(ge=0)] = 10.0
    """Records/s, from which on a queue grows"""
    rate_skew: Annotated[float, Meta(ge=1)] = 1.5
    """Ratio of the records of two instances, above which they are skewed"""
    queue_skew: Annotated[float, Meta(ge=1)] = 20.0
    """Likewise, of the records that wait before them"""
    max_factor: Annotated[float, Meta(gt=0)] = 4.0
    """An operator with p instances gets at most p x (1 + max_factor)"""
    scale_down: Share = Share(0)
    """Share of its instances that an operator loses when nothing waits anywhere; 0 % as in the published code"""


class Dhalion:
    """The policy for one dataflow."""

    def __init__(self, settings: DhalionSettings, dataflow: Dataflow) -> None:
        self._settings, self._dataflow = settings, dataflow

    def decide(self, samples: Sequence[Sample], running: Parallelism) -> Plan:
        """Return the instances to run next; those that run where nothing should change."""
        since = samples_since_change(samples, running)
        changed = len(since) < len(samples)
        if not since or (changed and since[-1].at - since[0].begin < self._settings.cooldown - 1e-9):
            return Plan(running, f"waits until {self._settings.cooldown:g} s after the last change")
        kept = [sample for sample in samples if sample.at > samples[-1].at - self._settings.history]
        now = kept[-1]
        totals = {name: sum(backpressure_ms(ones, now.seconds)) for name, ones in now.operators.items()}
        pressed = {name: total for name, total in totals.items() if total > self._settings.noise_ms}
        if len(pressed) > 1:
            return Plan(running, f"no diagnosis: back-pressure starts at {' and '.join(sorted(pressed))}")
        if not pressed:
            return self._resolve_idle(kept, running)
        return self._resolve_pressed(*next(iter(pressed.items())), kept, running)

    def _resolve_pressed(self, name: str, pressure: float, kept: Sequence[Sample], running: Parallelism) -> Plan:
        """Return the plan for the operator at which back-pressure starts, in milliseconds of a second."""
        instances = kept[-1].operators[name]
        found, named = diagnose(instances, self._settings)
        symptom = f"back-pressure of {pressure:.0f} ms/s starts at {name}"
        if found != "under-provisioned":
            which = f" of {', '.join(f'{name}[{index}]' for index in named)}" if named else ""
            return Plan(running, f"{symptom}; diagnosis: {found}{which}, for which there is no resolver")
        counts = _instance_counts(name, kept)
        if len(counts) > 1 and counts[-2] > counts[-1]:
            return Plan({**running, name: counts[-2]}, f"{symptom} after its scale-down, which is undone")
        if _was_useless(name, kept):
            return Plan(running, f"{symptom}; its last scale-up did not help and is blacklisted")
        more = scale_up(pressure, len(instances), self._settings.max_factor)
        why = f"{symptom}; diagnosis: under-provisioned, from {len(instances)} to {more}"
        return Plan({**running, name: more}, why)

    def _resolve_idle(self, kept: Sequence[Sample], running: Parallelism) -> Plan:
        """Return the plan where there is no back-pressure."""
        share, names = self._settings.scale_down, self._dataflow.operators
        if share <= 0 or any(self._waits(name, kept) for name in names):
            return Plan(running, "no back-pressure: nothing to diagnose")
        free = [name for name in names if running[name] > 1 and not _was_undone(_instance_counts(name, kept))]
        if not free:
            return Plan(running, "no back-pressure, and no operator that may lose instances")
        least = min(free, key=kept[-1].busy)
        fewer = max(1, math.floor(running[least] * (1 - share) + ROUNDING_SLACK))
        return Plan({**running, least: fewer}, f"no back-pressure and nothing waits: {least} loses instances")

    def _waits(self, name: str, kept: Sequence[Sample]) -> bool:
        """Return True if the queue of an operator is large or grows."""
        queues = [[one.queued for one in sample.operators[name]] for sample in kept]
        large = float(np.mean(queues[-1])) > self._settings.queue_size
        same = [each for each in queues if len(each) == len(queues[-1])]
        times = [sample.at for sample in kept][-len(same) :]
        return large or largest_slope(times, same) > self._settings.queue_growth


def backpressure_ms(instances: Sequence[InstanceSample], seconds: float) -> list[float]:
    """Return the milliseconds of a second for which each instance made the sources stop."""
    return [min(1000.0, 1000 * one.backpressure_s / seconds) for one in instances]


def is_skewed(values: Sequence[float], ratio: float) -> bool:
    """Return True if the largest value is more than `ratio` times the smallest."""
    return len(values) > 1 and max(values) > ratio * min(values)


def largest_slope(times: Sequence[float], queues: Sequence[Sequence[float]]) -> float:
    """Return the steepest least-squares slope of the queue of any instance, in records/s; 0 with fewer than 3 samples.

    Args:
        times: Seconds.
        queues: At each time, the records that wait before each instance.
    """
    if len(times) < MIN_SLOPE_SAMPLES:
        return 0.0
    at = np.asarray(times) - np.mean(times)
    lengths = np.asarray(queues, dtype=np.float64)
    return float(np.max(at @ (lengths - lengths.mean(axis=0)) / (at @ at)))


def diagnose(instances: Sequence[InstanceSample], settings: DhalionSettings) -> tuple[Diagnosis, list[int]]:
    """Return the diagnosis of an operator with back-pressure, and the numbers of the instances that it names."""
    queues, rates = [one.queued for one in instances], [one.processed for one in instances]
    queue_skew, rate_skew = is_skewed(queues, settings.queue_skew), is_skewed(rates, settings.rate_skew)
    long = [index for index, queued in enumerate(queues) if 2 * queued > max(queues)]
    if queue_skew and rate_skew:
        return "data skew", [index for index in long if 1.10 * rates[index] > max(rates)]
    if queue_skew:
        return "slow instance", long
    return ("none", []) if rate_skew else ("under-provisioned", [])


def scale_up(pressure_ms: float, instances: int, max_factor: float = 4.0) -> int:
    """Return the instances that an operator gets: p (1 + f), rounded up, with f = b / (1000 - b), at most `max_factor`.

    Sources that stop for b milliseconds of each second would send 1000 / (1000 - b) times as much if they did not stop.
    """
    stopped = min(pressure_ms, MAX_BACKPRESSURE_MS)
    factor = min(stopped / (1000 - stopped), max_factor)
    return math.ceil(instances * (1 + factor) - ROUNDING_SLACK)


def _was_useless(name: str, kept: Sequence[Sample]) -> bool:
    """Return True if the last change gave an operator instances, and the job takes hardly more since then."""
    groups = split_by_parallelism(kept)[-2:]
    if len(groups) < 2 or len(groups[0][-1].operators[name]) >= len(groups[1][-1].operators[name]):
        return False
    before, after = (sum(group[-1].taken.values()) for group in groups)
    return after < before * (1 + MIN_GAIN)


def _instance_counts(name: str, kept: Sequence[Sample]) -> list[int]:
    """Return the instances that an operator had, one after the other, without repetitions."""
    return [count for count, _ in groupby(len(sample.operators[name]) for sample in kept)]


def _was_undone(counts: Sequence[int]) -> bool:
    """Return True if a scale-down was undone: it is blacklisted as long as it is remembered."""
    steps = zip(counts, counts[1:], counts[2:], strict=False)
    return any(fewer < before == again for before, fewer, again in steps)


plugin = PolicyPlugin(settings=DhalionSettings, make=Dhalion)
