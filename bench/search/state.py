"""Where a two-counter search stands: what it tries next and what the trial it has just seen changes.

    [generator's ceiling known] -> one trial at the top of what it can offer -> "at least", or below it:
    climb -> warm-up -> re-read -> trials at the posterior's 60 % point until it is narrow -> soak at its lower end -> answer

After a restart the system is cold: it is warmed up again before the next trial. Reference: max-rate-search, sections 3 and 7.
"""

import math
from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.stability import Drift
from bench.analysis.verdict import Verdict
from bench.model.measurement import Measurement, PlannedTrial, Series
from bench.search.bracketing import Bracketing
from bench.search.objectives import Look
from bench.search.observations import Observations
from bench.search.parameters import Durations, SearchParameters
from bench.search.posterior import FREAK, Observation, Prior
from bench.search.problem import SearchProblem, Step
from bench.search.trial_summary import reached

Stage = Literal["ceiling", "climb", "re-read", "trials"]
End = Literal["", "measured", "generator", "range", "floor", "died", "invalid", "unstable"]
Read = Callable[[Measurement], Drift]
BY_BACKLOG = ("backlog grew", "the source pushed back", "did not drain")
"""Why an overloaded trial is overloaded when its backlog says so; any other reason is a broken objective."""
HINT_REACH = 2.5
"""A first look that is farther from the hint than so many of its standard deviations contradicts it."""
NEAR_FLOOR, MAX_FLOORS = 1.05, 2
FAR_BELOW = 0.5
"""A hasty search that expects less than this of the generator's ceiling climbs towards it instead of beginning there."""
READABLE, GIVEN_UP_SHARE = 10.0, 0.5
"""A trial given up before so many seconds is no reading; so much of its loss is believed."""
MIN_LOSS = 0.005
"""An overloaded trial with a smaller loss is as good as a sustained one."""


class SearchState(Struct, frozen=True, eq=False):
    """`cold`: a warm-up comes before the next trial. `cap`: the generator's limit. `confirmed`: the rate of a sustained soak.
    `breach`: a rate that broke an objective once, which is tried again before it is believed.

    `hinted`: the centre is a neighbour's estimate, which stands as long as a first look does not contradict it. `hasty`: the budget
    holds but a few trials; there is no warm-up and no second look, and the probes of the climb, in `glances`, are evidence.
    """

    question: SearchProblem
    recipe: SearchParameters
    read: Read
    stage: Stage
    climb: Bracketing
    cold: bool = False
    hinted: bool = False
    hasty: bool = False
    glances: tuple[Observation, ...] = ()
    looks: tuple[Look, ...] = ()
    observations: Observations | None = None
    cap: float | None = None
    doubted: float | None = None
    breach: float | None = None
    confirmed: float | None = None
    deaths: int = 0
    invalid: int = 0
    soaks: int = 0
    floors: int = 0
    end: End = ""

    @classmethod
    def of(cls, question: SearchProblem, recipe: SearchParameters, read: Read) -> "SearchState":
        """The course of a search that has not tried anything yet."""
        lowest, highest, hint = float(question.search.lowest), question.highest, question.hint_hz
        hasty = float(question.search.budget) < recipe.trials_in_budget * recipe.hasty_trial
        start = question.start if hasty or question.search.start else min(highest, max(lowest, recipe.first_rate))
        course = cls(question, recipe, read, "climb", Bracketing(start, lowest, highest), hasty=hasty)
        if question.generator_hz is not None and recipe.headroom * question.generator_hz < highest:
            capped = course.capped(recipe.headroom * question.generator_hz)
            far = (
                start < FAR_BELOW * capped.top
            )  # few trials are too dear to look first at what is hardly to be reached
            return replace(capped, stage="climb", cold=False) if hasty and far else capped
        if hint is not None and not hasty:
            centre = min(highest, max(lowest, hint))
            return replace(course, stage="re-read", cold=True, hinted=True, climb=replace(course.climb, centre=centre))
        return course

    def planned(self) -> PlannedTrial | None:
        """What to try next, without a number; None once the answer stands."""
        if self.end:
            return None
        durations = Durations(self.question, self.recipe)
        if self.stage == "climb":
            return durations.probe(self.climb.rate)
        if self.cold and not self.hasty and not self.recipe.skip_warm_up:
            return durations.warm_up(self._warm_up_rate())
        if self.stage == "re-read":
            return durations.probe(self._re_read_rate(), times=self.recipe.re_read)
        if self.stage == "ceiling":
            return durations.trial(self.top)
        if not self._narrow():
            return durations.trial(self._next_rate())
        return durations.trial(self.top) if self.open_above else self.soak()

    def soak(self) -> PlannedTrial:
        """The trial that confirms the lower end of the interval."""
        assert self.observations is not None
        low, middle = self.observations.quantiles(0.025, 0.5)
        low = middle * (low / middle) ** self.recipe.soak_reach
        return Durations(self.question, self.recipe).trial(min(self.top, max(low, self.climb.lowest)), "confirm")

    def after(self, step: Step) -> "SearchState":
        """The course that knows one more trial."""
        seen, verdict = step.seen, step.verdict
        renewed = not seen.deployment_reusable
        if seen.ended in ("framework died", "source died"):
            deaths = self.deaths + 1
            return replace(self, deaths=deaths, cold=True, end="died" if deaths >= self.recipe.most_deaths else "")
        if verdict.word == "invalid" and verdict.why == "generator":
            return replace(self._late(seen), invalid=0)
        drift = self.read(seen)
        if (
            self.hasty and verdict.word == "overloaded" and verdict.why in BY_BACKLOG
        ):  # the judge also looks at the drain
            drift = replace(drift, overloaded=True, loss=verdict.loss or drift.loss)
        if verdict.word == "invalid" or drift.broken:
            invalid = self.invalid + 1
            end: End = "invalid" if invalid >= self.recipe.most_invalid else ""
            return replace(self, invalid=invalid, cold=self.cold or renewed, end=end)
        looks = (
            (*self.looks, Look(replace(seen, series=Series()), drift))
            if seen.planned.purpose != "warm-up"
            else self.looks
        )
        cold = renewed or (self.cold and seen.planned.purpose != "warm-up")
        known = replace(self, looks=looks, cold=cold, invalid=0, doubted=None)
        if seen.planned.purpose == "warm-up":
            return known.warm_up(drift)
        if self.stage == "climb":
            glance = known.observed(seen, verdict, drift)
            if (
                self.hasty and glance.kind == "at least"
            ):  # a drift that the judge lets pass ends no climb of a few trials
                drift = replace(drift, loss=0.0)
            return replace(known, glances=(*known.glances, glance)).climbed(drift, breached=_breached(verdict, drift))
        if self.stage == "re-read":
            return known.read_again(seen.planned.rate, drift, known.observed(seen, verdict, drift))
        return known.run_trial(seen, verdict, drift)

    @property
    def top(self) -> float:
        """The highest rate that is planned."""
        return self.climb.top

    def capped(self, top: float) -> "SearchState":
        """The course that will not ask more than `top` of the generator: it tries that first."""
        top = max(top, self.climb.lowest)
        known = replace(self, climb=self.climb.below(top), cap=top, stage="ceiling", cold=True, doubted=None)
        return (
            known
            if self.observations is None
            else replace(known, observations=self.observations.below(top), stage="trials")
        )

    @property
    def open_above(self) -> bool:
        """Whether the range of the evidence ends where no more is planned, and not where the system does."""
        return self.observations is not None and self.observations.quantiles(0.975)[0] > self.top

    def _late(self, seen: Measurement) -> "SearchState":
        """A late generator may have met a busy moment of the machine: it is asked again; late again, it is the limit."""
        if self.doubted != seen.planned.rate:
            return replace(self, doubted=seen.planned.rate)
        top = self.recipe.headroom * reached(seen)
        return replace(self, end="invalid") if top < self.climb.lowest else self.capped(min(top, 0.99 * self.top))

    def _warm_up_rate(self) -> float:
        recipe = self.recipe
        if self.observations is not None:
            return recipe.warm_up_load * self.observations.quantiles(0.5)[0]
        if self.stage == "ceiling":
            return self.top / 2
        return (recipe.hinted_load if self.hinted else recipe.warm_up_load) * (self.climb.centre or self.climb.rate)

    def _re_read_rate(self) -> float:
        assert self.climb.centre is not None
        return min(self.recipe.re_read_load * self.climb.centre, self.top)

    def _next_rate(self) -> float:
        assert self.observations is not None
        if self.breach is not None:
            return self.breach
        middle, rate = self.observations.quantiles(0.5, 0.5 if self.observations.breached else self.recipe.next_share)
        if middle < NEAR_FLOOR * self.climb.lowest:
            return self.climb.lowest
        return min(self.top, max(rate, self.climb.lowest))

    def _narrow(self) -> bool:
        observations, recipe = self.observations, self.recipe
        assert observations is not None
        least = recipe.least_trials_hinted if self.hinted or self.hasty else recipe.least_trials
        least += recipe.outvoted * observations.disagreeing(recipe.surprise)
        return (
            self.breach is None
            and observations.trials >= least
            and observations.width <= float(self.question.search.precision)
        )

    def warm_up(self, drift: Drift) -> "SearchState":
        """The course after a warm-up: one that was far too much says that the centre is too high."""
        if self.stage == "re-read" and drift.loss > self.recipe.bracket_stop and self.climb.centre is not None:
            centre = max(self.climb.lowest, self.climb.centre * (1 - drift.loss))
            return replace(self, climb=replace(self.climb, centre=centre), hinted=False)
        return self

    def climbed(self, drift: Drift, *, breached: bool) -> "SearchState":
        """The course after a probe of the climb."""
        recipe = self.recipe.hasty if self.hasty else self.recipe
        given_up = not self.hasty and drift.seconds < recipe.probe * 0.9
        climb = self.climb.after(None if breached else drift.loss, recipe, given_up=given_up)
        known = replace(self, climb=climb)
        if climb.centre is None:
            return known
        if climb.centre >= self.top:
            return replace(known, stage="ceiling", cold=True)
        if not self.hasty:
            return replace(known, stage="re-read", cold=True)
        known = known.with_prior(climb.centre, recipe.hasty_sd, cold=False)
        assert known.observations is not None
        return replace(known, observations=known.observations.after(*self.glances))

    def read_again(self, rate: float, drift: Drift, observation: Observation) -> "SearchState":
        """The course whose centre was read again on a warm system."""
        recipe, centre = self.recipe, self.climb.centre
        assert centre is not None
        if observation.kind == "at least" and drift.loss <= recipe.bracket_loss and rate < self.top:
            climb = self.climb.beyond(rate, recipe)
            if climb.centre is None:
                return replace(self, stage="climb", climb=climb, hinted=False)
            closed = replace(self, climb=climb, hinted=False).with_prior(climb.centre, recipe.prior_sd, cold=self.cold)
            assert closed.observations is not None
            return replace(closed, observations=closed.observations.after(observation))
        reading = rate * (1 - drift.loss)
        if self.hinted and abs(math.log(reading / centre)) > HINT_REACH * recipe.hint_sd:
            climb = replace(self.climb, centre=max(self.climb.lowest, reading))
            return replace(self, climb=climb, hinted=False, cold=True)
        known = self.with_prior(centre, recipe.hint_sd if self.hinted else recipe.prior_sd, cold=self.cold)
        assert known.observations is not None
        return replace(known, observations=known.observations.after(observation))

    def with_prior(self, centre: float, sd: float, *, cold: bool) -> "SearchState":
        prior = Prior(centre, sd, self.climb.lowest, self.top)
        return replace(self, observations=Observations.of(prior), stage="trials", cold=cold)

    def run_trial(self, seen: Measurement, verdict: Verdict, drift: Drift) -> "SearchState":
        """The course after a whole trial or a soak."""
        rate, sustained = seen.planned.rate, not drift.overloaded and verdict.word == "sustained"
        if _breached(verdict, drift) and self.breach != rate:
            return replace(self, breach=rate)
        observation = self.observed(seen, verdict, drift)
        known = (
            self
            if self.observations is not None
            else self.with_prior(observation.rate, self.recipe.prior_sd, cold=self.cold)
        )
        assert known.observations is not None
        floors = self.floors + (rate <= 1.01 * self.climb.lowest)
        known = replace(known, breach=None, observations=known.observations.after(observation), floors=floors)
        soak = seen.planned.purpose == "confirm"
        if sustained:
            known = replace(known, floors=0, confirmed=max(rate, self.confirmed or 0) if soak else self.confirmed)
        elif soak or (self.confirmed is not None and rate <= self.confirmed):
            known = replace(known, confirmed=None, soaks=self.soaks + soak)
        return replace(known, end=known.end_after(rate, sustained=sustained, soak=soak))

    def observed(self, seen: Measurement, verdict: Verdict, drift: Drift) -> Observation:
        """What a trial says of the ceiling."""
        rate, seconds = seen.planned.rate, max(drift.seconds, 1.0)
        if seen.ended == "hopeless" and drift.seconds < READABLE and not self.hasty:
            return Observation("given up", rate * (1 - GIVEN_UP_SHARE * drift.loss), seconds)
        if drift.overloaded and drift.loss > MIN_LOSS:
            floor = self.recipe.hasty_floor if self.hasty else FREAK
            return Observation("reading", rate * (1 - drift.loss), seconds, drift.slices, drift.slice_seconds, floor)
        if verdict.word == "overloaded" and verdict.why in BY_BACKLOG:  # the judge saw more than the drift shows
            return Observation("given up", rate, seconds)
        return Observation("at most" if _breached(verdict, drift) else "at least", rate, seconds)

    def end_after(self, rate: float, *, sustained: bool, soak: bool) -> End:
        """Whether the trial at that rate was the last, and why."""
        observations, recipe = self.observations, self.recipe
        assert observations is not None
        if self.floors >= MAX_FLOORS:
            return "floor"
        if self.soaks >= recipe.most_soaks or observations.disagreeing(recipe.surprise) >= recipe.most_surprises:
            return "unstable"
        if observations.torn(recipe.clearly) >= recipe.most_torn:
            return "unstable"
        if sustained and rate >= 0.999 * self.top:
            return "generator" if self.cap is not None else "range"
        return "measured" if sustained and soak and self._narrow() and not self.open_above else ""


def _breached(verdict: Verdict, drift: Drift) -> bool:
    """Whether another objective than the backlog was broken by a rate that the system kept up with."""
    return verdict.word == "overloaded" and verdict.why not in BY_BACKLOG and not drift.overloaded
