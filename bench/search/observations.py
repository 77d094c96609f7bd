"""Observations from the trials of one cell: their readings, the rates that were sustained, and the posterior."""

import math
from functools import cached_property
from statistics import median

from bench.analysis.capacity_reading import (
    MAX_DOUBT,
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
from bench.model.measurement import Measurement
from bench.search.parameters import SearchParameters
from bench.search.posterior import WARM_UPS_S, CapacityPosterior, CapacityPrior, capacity_posterior
from bench.search.problem import SearchProblem, Step
from bench.search.settling import bound_of, is_settled
from bench.search.trial_summary import sent_rate

SEARCH_PURPOSES = ("search", "confirm")
"""Purposes of the trials that the search learns from."""


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
        processed beside other work is at most its capacity.
        """
        disturbed = verdict.cause == "other work"
        ended = measurement.ended in ("complete", "hopeless")
        if (verdict.word == "invalid" and not disturbed) or not ended or stability.inconsistent:
            return None
        if measurement.planned.purpose not in SEARCH_PURPOSES:
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
    def is_starved(self) -> bool:
        """True if a trial shows that messages do not reach the batches any faster, and that batches are no limit."""
        return any(reading is not None and reading.starved for reading in self.readings)

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
        rates = [
            step.measurement.planned.rate
            for step, reading in zip(self.steps, self.readings, strict=True)
            if step.verdict.word == "overloaded" and reading is not None
        ]
        return min(rates, default=math.inf)

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
        rates = sorted(math.exp(reading.log_capacity(0.0)) / reading.left(0.5) for reading in self.estimates)
        centre, sd = self.problem.hint_hz, self.parameters.hint_sd
        if centre is None and rates:
            centre, sd = median(rates), self.parameters.reading_sd
        top = self.problem.bound_hz or 8 * max([self.highest, *rates])
        lowest = min([self.lowest, *rates]) / 2
        prior = CapacityPrior(
            lowest,
            max(1.02 * top, 2 * lowest),
            centre,
            sd,
            self.problem.cold,
            self.problem.fixed_share,
            self.problem.noise,
            self.problem.warm_ups,
            self.problem.requested_s,
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

    @cached_property
    def is_contradictory(self) -> bool:
        """True if trials disagree by far more than their noise: the capacity is not one number."""
        warm = self._warm
        if len(warm) <= self.parameters.max_contradictions:
            return False
        if self._contrary_pairs(warm) > self.parameters.max_contradictions or self._is_scattered(warm):
            return True
        middle = math.log(self.interval[1])
        wrong = sum(self._contradicts(reading, middle) for reading in warm)
        return wrong > self.parameters.max_contradictions and 3 * wrong > len(warm)

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

    @property
    def _warm(self) -> list[Reading]:
        return [each for each in self.known if not self.problem.cold or each.age > max(WARM_UPS_S)]

    def _is_scattered(self, readings: list[Reading]) -> bool:
        """Return True if long trials differ by far more than the noise within them: the capacity changes slowly.

        Not after a death: a framework that was started again is slow at first. Not beside much other work, which
        changes what is left of the capacity.
        """
        parameters = self.parameters
        spreads = [each.spread for each in readings if each.spread is not None]
        long = sum(each.seconds >= parameters.long_trial for each in readings)
        disturbed = any(each.beside == "processed" or each.doubt > MAX_DOUBT for each in readings)
        if self.deaths or disturbed or long < parameters.min_long_trials or not spreads:
            return False
        noise = self.posterior.noise
        return noise > max(parameters.max_noise, parameters.max_noise_ratio * median(spreads))

    def _contrary_pairs(self, readings: list[Reading]) -> int:
        """Return how many sustained trials have an own overloaded one that shows a clearly lower capacity.

        Clearly lower, whatever other work took. The noise is that within the trials: a system that changes between two
        capacities is calm within most of them.
        """
        spreads = [each.spread for each in readings if each.spread is not None]
        noise = max(self.parameters.typical_noise, 2 * median(spreads) if spreads else 0.0)
        noise *= self.parameters.contrary_sds
        kept = [each for each in readings if each.kind == "at least"]
        shown = [each for each in readings if each.near and each.excess <= self.parameters.max_contrary_excess]

        def is_contrary(high: Reading, low: Reading) -> bool:
            margin = noise * math.sqrt(1 / high.seconds + 1 / low.seconds)
            return math.log(high.rate / low.rate * low.ratio / high.ratio) > margin - math.log(low.left(1.0))

        sustained = sum(any(is_contrary(high, low) for low in shown) for high in kept)
        overloaded = sum(any(is_contrary(high, low) for high in kept) for low in shown)
        return min(sustained, overloaded)

    @property
    def _search_steps(self) -> list[Step]:
        return [step for step in self.steps if step.measurement.planned.purpose in SEARCH_PURPOSES]

    def _contradicts(self, reading: Reading, middle: float) -> bool:
        noise = max(self.parameters.typical_noise, self.posterior.noise)
        margin = self.parameters.contradiction_sds * noise / math.sqrt(reading.seconds)
        if reading.kind == "estimate":
            if not reading.near or reading.excess > self.parameters.reading_sd:
                return False
            return abs(reading.log_capacity(self.posterior.fixed_share) - middle) > margin - math.log(reading.left(1.0))
        distance = reading.log_capacity(self.posterior.fixed_share) - middle
        return distance > margin if reading.kind == "at least" else -distance > margin


def _breaches(step: Step) -> bool:
    return step.verdict.word == "overloaded" and not is_of_backlog(step.verdict, step.measurement)
