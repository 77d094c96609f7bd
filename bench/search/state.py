"""The state of a two-counter search.

    [generator's ceiling known] -> a trial at the highest rate that the generator can offer -> "at least", or below
    it: bracketing -> warm-up -> check -> trials at a quantile of the posterior until its interval is narrow ->
    confirmation -> result

After a restart the system is cold: it is warmed up again before the next trial. `bench.search.planning` plans the
next trial of a state, `bench.search.learning` gives the state after a trial. Reference: max-rate-search, sections 3
and 7.
"""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.stability import Stability
from bench.model.measurement import Measurement
from bench.search.bracketing import Bracketing
from bench.search.objectives import AssessedTrial
from bench.search.observations import Observations
from bench.search.parameters import SearchParameters
from bench.search.posterior import Observation, Prior
from bench.search.problem import SearchProblem

Stage = Literal["highest rate", "bracketing", "check", "trials"]
End = Literal["", "measured", "generator", "highest rate", "lowest rate", "died", "invalid", "unstable"]
Assess = Callable[[Measurement], Stability]
FAR_BELOW = 0.5
"""A low-budget search that starts below this share of the highest rate brackets upwards instead of trying the highest
rate first."""


class SearchState(Struct, frozen=True, eq=False):
    """The state after some trials; rates in messages/s.

    A search of low budget, which holds only a few trials, has neither warm-ups nor a check, and its bracketing probes
    count as observations.
    """

    problem: SearchProblem
    parameters: SearchParameters
    assess: Assess
    stage: Stage
    bracketing: Bracketing
    cold: bool = False
    """a warm-up precedes the next trial"""
    hinted: bool = False
    """the centre is a neighbour's estimate, which the check has not contradicted"""
    low_budget: bool = False
    probes: tuple[Observation, ...] = ()
    """of bracketing"""
    assessed_trials: tuple[AssessedTrial, ...] = ()
    observations: Observations | None = None
    """from the stage "trials" on"""
    generator_limit: float | None = None
    late_at: float | None = None
    """the rate at which the generator was late in the last trial; it is tried again"""
    breach: float | None = None
    """the rate that broke an objective other than the backlog in the last trial; it is tried again"""
    confirmed: float | None = None
    """the highest rate of a sustained confirmation trial"""
    deaths: int = 0
    invalid: int = 0
    """consecutive invalid trials"""
    failed_confirmations: int = 0
    lowest_failures: int = 0
    """consecutive overloaded trials at the lowest rate"""
    end: End = ""

    @property
    def highest(self) -> float:
        """The highest rate that is planned."""
        return self.bracketing.highest

    @property
    def known_observations(self) -> Observations:
        """The observations in the stage "trials", in which they exist."""
        assert self.observations is not None
        return self.observations

    @property
    def open_above(self) -> bool:
        """True if the interval ends above the highest planned rate, so that its upper end is not measured."""
        return self.observations is not None and self.observations.quantiles(0.975)[0] > self.highest

    @property
    def precise(self) -> bool:
        """True if there are enough trials and the interval is as narrow as requested."""
        observations, parameters = self.known_observations, self.parameters
        required = parameters.min_trials_hinted if self.hinted or self.low_budget else parameters.min_trials
        required += parameters.trials_per_outlier * observations.count_outliers(parameters.outlier_sds)
        return (
            self.breach is None
            and observations.trials >= required
            and observations.width <= float(self.problem.search.precision)
        )

    def with_prior(self, centre: float, sd: float, *, cold: bool) -> "SearchState":
        """Return the state in the stage "trials", with the prior ln(capacity) ~ Normal(ln `centre`, `sd`)."""
        prior = Prior(centre, sd, self.bracketing.lowest, self.highest)
        return replace(self, observations=Observations.of(prior), stage="trials", cold=cold)

    def add_observations(self, *observations: Observation) -> "SearchState":
        """Return the state with more observations."""
        return replace(self, observations=self.known_observations.add(*observations))

    def limit_generator(self, highest: float) -> "SearchState":
        """Return the state in which the generator offers at most `highest`.

        Without observations that rate is tried next.
        """
        highest = max(highest, self.bracketing.lowest)
        limited = replace(
            self, bracketing=self.bracketing.limit_to(highest), generator_limit=highest, stage="highest rate",
            cold=True, late_at=None,
        )  # fmt: skip
        if self.observations is None:
            return limited
        return replace(limited, observations=self.observations.limit_to(highest), stage="trials")


def start_search(problem: SearchProblem, parameters: SearchParameters, assess: Assess) -> SearchState:
    """Return the state before the first trial.

    Args:
        problem: The cell, its range of rates, its budget, and what is known of it.
        parameters: The constants of the search.
        assess: Function that assesses the counters of a measurement.
    """
    lowest, highest, hint = float(problem.search.lowest), problem.highest, problem.hint_hz
    low_budget = float(problem.search.budget) < parameters.trials_in_budget * parameters.low_budget_trial
    first = min(highest, max(lowest, parameters.first_rate))
    start = problem.start if low_budget or problem.search.start else first
    bracketing = Bracketing(start, lowest, highest)
    state = SearchState(problem, parameters, assess, "bracketing", bracketing, low_budget=low_budget)
    if problem.generator_hz is not None and parameters.generator_share * problem.generator_hz < highest:
        limited = state.limit_generator(parameters.generator_share * problem.generator_hz)
        skip = low_budget and start < FAR_BELOW * limited.highest
        return replace(limited, stage="bracketing", cold=False) if skip else limited
    if hint is not None and not low_budget:
        centre = min(highest, max(lowest, hint))
        return replace(state, stage="check", cold=True, hinted=True, bracketing=replace(bracketing, centre=centre))
    return state
