"""Observations from the trials of one cell: their readings, the rates that were sustained, and the posterior."""

import math
from collections.abc import Callable
from functools import cached_property
from statistics import median

from bench.analysis.capacity_reading import (
    Reading,
    is_breach,
    is_of_backlog,
    merge_beside_other_work,
    read_capacity,
    without_light_batches,
)
from bench.analysis.foreign_work import DEATHS
from bench.analysis.stability import Stability
from bench.analysis.verdict import GENERATOR_LATE, Verdict
from bench.model.measurement import Measurement, PlannedTrial
from bench.search.parameters import SearchParameters
from bench.search.posterior import CapacityPosterior, CapacityPrior, capacity_posterior, expected_speed
from bench.search.problem import SearchProblem, Step
from bench.search.settling import bound_of, is_settled
from bench.search.trial_summary import sent_rate

SEARCH_PURPOSES = ("search", "confirm")
"""Purposes of the trials that the search learns from."""
LONG_RATIO, GROWTH_SHARE = 1.15, 0.5
"""Batches take so many intervals, on average, and the largest is larger than an interval's messages by less than this
share of the time that they take longer: they do not grow, as those that a receiver cuts each interval."""


class Evidence:
    """Everything that follows from the steps of a search and their readings; rates in messages/s."""

    def __init__(
        self,
        problem: SearchProblem,
        parameters: SearchParameters,
        steps: tuple[Step, ...],
        readings: tuple[Reading | None, ...],
    ) -> None:
        self.problem, self.parameters, self.steps, self.readings = problem, parameters, steps, readings

    def read(self, measurement: Measurement, verdict: Verdict, stability: Stability) -> Reading | None:
        """Return the reading of the next trial; None if it shows nothing.

        A breach of another objective than the backlog counts when it comes a second time at that rate. What a system
        processed beside other work is at most its capacity; at which rate it keeps a latency it does not show.
        """
        disturbed = verdict.cause == "other work"
        ended = measurement.ended in ("complete", "hopeless")
        if (verdict.word == "invalid" and not disturbed) or not ended or stability.inconsistent:
            return None
        if measurement.planned.purpose not in SEARCH_PURPOSES:
            return None
        if disturbed and self.problem.objectives.p99 is not None:
            return None
        rate, last = measurement.planned.rate, self.steps[-1] if self.steps else None
        if is_breach(measurement, verdict, stability) and not (
            last and _breaches(last) and last.measurement.planned.rate == rate
        ):
            return None
        before = sum(step.measurement.seconds for step in self.steps)
        known = measurement.warm_s if measurement.warm_s is not None else before
        return read_capacity(
            measurement, verdict, stability, age=known + (measurement.planned.settle + measurement.planned.window) / 2
        )

    @cached_property
    def known(self) -> list[Reading]:
        """The readings of the trials that have one.

        Trials without time to settle, which only find the range, are bounds until another one shows the capacity.
        """
        settled = self._settled
        if any(reading.near for reading in settled):
            return merge_beside_other_work(without_light_batches(settled))
        rough = [bound_of(reading, self.parameters) for reading in self._unsettled]
        return merge_beside_other_work(without_light_batches([*settled, *rough]))

    @property
    def is_rough(self) -> bool:
        """True if only trials without time to settle have shown a capacity.

        False if a settled one was overloaded above what is sustained.
        """
        shown = not self.estimates and any(reading.near for reading in self._unsettled)
        return shown and self.settled_overload == math.inf

    @cached_property
    def settled_overload(self) -> float:
        """The lowest rate above the highest sustained one that a settled trial was overloaded at; inf for none."""
        settled = [each.rate for each in self._overloaded if is_settled(self.problem, self.parameters, each)]
        return min((rate for rate in settled if rate > self.sustained), default=math.inf)

    @property
    def is_surpassed(self) -> bool:
        """True if no rate above the highest sustained one was overloaded, though others were."""
        return bool(self._overloaded) and max(each.rate for each in self._overloaded) <= self.sustained

    @property
    def has_upper_end(self) -> bool:
        """True if any trial shows how large the capacity is at most, and others do not say that it was wrong."""
        if self.estimates or self.overloaded == math.inf:
            return bool(self.estimates)
        return self.interval[2] <= self.parameters.max_beyond * self.overloaded

    @property
    def is_starved(self) -> bool:
        """True if a trial shows that messages do not reach the batches any faster, and that batches are no limit."""
        return any(reading is not None and reading.starved for reading in self.readings)

    @cached_property
    def grows(self) -> bool:
        """True if the answer is the rate of batches that may grow: the scenario asks for it, and they can.

        They cannot where no more messages reach them: what is processed then is the rate.
        """
        fixed = any(
            reading is not None
            and reading.kind == "estimate"
            and reading.ratio > LONG_RATIO
            and reading.largest < step.measurement.planned.rate * (1 + GROWTH_SHARE * (reading.ratio - 1))
            for step, reading in zip(self.steps, self.readings, strict=True)
        )
        return self.problem.grows and not fixed and not self.is_starved

    @cached_property
    def estimates(self) -> list[Reading]:
        """The readings that say how large the capacity is, whatever the fixed cost of batches is."""
        return [reading for reading in self.known if reading.near]

    @cached_property
    def sustained_steps(self) -> list[Step]:
        """The sustained trials, the one with the lowest rate first."""
        steps = [step for step in self._search_steps if step.verdict.word == "sustained"]
        return sorted(steps, key=lambda step: step.measurement.planned.rate)

    @cached_property
    def sustained(self) -> float:
        """The highest sustained rate; 0 for none."""
        return self.sustained_steps[-1].measurement.planned.rate if self.sustained_steps else 0.0

    @cached_property
    def overloaded(self) -> float:
        """The lowest overloaded rate; inf for none."""
        return min((each.rate for each in self._overloaded), default=math.inf)

    @cached_property
    def missed_beside_other_work(self) -> int:
        """The trials that missed the latency objective beside other work, at rates at which the backlog does not grow.

        None where a trial without other work shows where it is kept, and none up to what was sustained.
        """
        limit = self.problem.objectives.p99
        known = any(_breaches(step) for step, each in zip(self.steps, self.readings, strict=True) if each is not None)
        if limit is None or known:
            return 0
        most = self.interval[0] if self.estimates else math.inf
        found = [step.measurement for step in self.steps if step.verdict.cause == "other work"]
        open_ones = [each.from_due.p99 for each in found if self.sustained < each.planned.rate < most]
        return sum(p99 is not None and p99 > limit for p99 in open_ones)

    @cached_property
    def late_rates(self) -> list[float]:
        """The rates that the generator sent in the trials in which it was late."""
        return [sent_rate(step.measurement) for step in self.steps if step.verdict.why == GENERATOR_LATE]

    @cached_property
    def generator_rates(self) -> list[float]:
        """The rates that the generator sent in the trials in which it was the limit; two at least, or none.

        In a trial below what was sustained, and in a single one, it was disturbed.
        """
        limits = [rate for rate in self.late_rates if rate > self.parameters.generator_share * self.sustained]
        return limits if len(limits) > 1 else []

    @property
    def lowest(self) -> float:
        """The lowest rate that is planned."""
        return float(self.problem.search.lowest)

    @cached_property
    def highest(self) -> float:
        """The highest rate that is planned: what the load generator reaches, or the scenario's or theory's end."""
        ceilings = [self.problem.generator_hz] if self.problem.generator_hz else []
        share = self.parameters.generator_share
        if self.generator_rates:
            ceilings.append(min(self.generator_rates))
        return max(self.lowest, min([self.problem.highest, *(share * ceiling for ceiling in ceilings)]))

    @cached_property
    def seconds_at_highest(self) -> float:
        """The length of all windows at the highest rate that were sustained."""
        planned = [step.measurement.planned for step in self.sustained_steps]
        return sum(each.window for each in planned if each.rate >= 0.999 * self.highest)

    @property
    def generator_limited(self) -> bool:
        """True if the load generator sets the highest rate that is planned."""
        return self.highest < self.problem.highest

    @cached_property
    def posterior(self) -> CapacityPosterior:
        """The posterior of the capacity."""
        cold, warm_ups, requested_s = self.problem.cold, self.problem.warm_ups, self.problem.requested_s
        speeds = [expected_speed(reading, warm_ups, requested_s) if cold else 1.0 for reading in self.estimates]
        rates = [
            math.exp(reading.log_capacity(0.0)) / reading.left(0.5) / speed
            for reading, speed in zip(self.estimates, speeds, strict=True)
        ]
        centre, sd = self.problem.hint_hz, self.parameters.hint_sd
        if centre is None and rates:
            centre, sd = median(rates), self.parameters.cold_reading_sd if cold else self.parameters.reading_sd
        top = self.problem.bound_hz or 8 * max([self.highest, *rates])
        lowest = min([self.lowest, *rates]) / 2
        prior = CapacityPrior(
            lowest,
            max(1.02 * top, 2 * lowest),
            centre,
            sd,
            cold,
            self.problem.fixed_share,
            self.problem.noise,
            warm_ups,
            requested_s,
            self.grows,
        )
        return capacity_posterior(prior, self.known, batches=self.problem.batch_interval > 0)

    @cached_property
    def interval(self) -> tuple[float, float, float]:
        """The 95 % interval and the median: (low, median, high)."""
        return self.posterior.interval(self.parameters.inflation)

    @cached_property
    def is_precise(self) -> bool:
        """True if there are enough readings and the interval is as narrow as the scenario asks."""
        least = self.parameters.min_readings
        if len(self._settled) < least or not self.estimates or not self.sustained:
            return False
        low, _, high = self.interval
        return math.log(high / low) <= 2 * math.log1p(float(self.problem.search.precision) / 2)

    @cached_property
    def confirmed(self) -> float | None:
        """The highest sustained rate that is hardly above the capacity; None without one."""
        rates = [step.measurement.planned.rate for step in self.sustained_steps]
        if self.estimates:
            most = self.posterior.quantiles(self.parameters.confirmed_share)[0]
            rates = [rate for rate in rates if rate <= most]
        return max(rates, default=None)

    @property
    def deaths(self) -> int:
        """The number of trials in which the framework or the source died."""
        return sum(step.measurement.ended in DEATHS for step in self.steps)

    def with_only(self, accepts: Callable[[Reading], bool]) -> "Evidence":
        """Return the evidence of the readings that `accepts` returns True for; rates and deaths are those of all."""
        readings = tuple(each if each is not None and accepts(each) else None for each in self.readings)
        return Evidence(self.problem, self.parameters, self.steps, readings)

    @cached_property
    def _settled(self) -> list[Reading]:
        return self._readings(settled=True)

    @cached_property
    def _unsettled(self) -> list[Reading]:
        return self._readings(settled=False)

    def _readings(self, *, settled: bool) -> list[Reading]:
        return [
            reading
            for step, reading in zip(self.steps, self.readings, strict=True)
            if reading is not None and is_settled(self.problem, self.parameters, step.measurement.planned) == settled
        ]

    @cached_property
    def _overloaded(self) -> list[PlannedTrial]:
        """The overloaded trials that show something."""
        return [
            step.measurement.planned
            for step, reading in zip(self.steps, self.readings, strict=True)
            if step.verdict.word == "overloaded" and reading is not None
        ]

    @property
    def _search_steps(self) -> list[Step]:
        return [step for step in self.steps if step.measurement.planned.purpose in SEARCH_PURPOSES]


def _breaches(step: Step) -> bool:
    return step.verdict.word == "overloaded" and not is_of_backlog(step.verdict, step.measurement)
