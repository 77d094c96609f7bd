"""The next trial of a two-counter search, as a function of its state. Reference: max-rate-search, section 3."""

from bench.model.measurement import PlannedTrial
from bench.search.durations import TwoCounterDurations
from bench.search.state import SearchState

NEAR_LOWEST = 1.05
"""A median below this multiple of the lowest rate leads to a trial at the lowest rate."""


def plan_next(state: SearchState) -> PlannedTrial | None:
    """Return the next trial, with number 0; None when the search is finished."""
    if state.end:
        return None
    durations = TwoCounterDurations(state.problem, state.parameters)
    if state.stage == "bracketing":
        return durations.plan_probe(state.bracketing.rate)
    if state.cold and not state.low_budget and not state.parameters.skip_warm_up:
        return durations.plan_warm_up(_warm_up_rate(state))
    if state.stage == "check":
        return durations.plan_probe(_check_rate(state), times=state.parameters.check_probes)
    if state.stage == "highest rate":
        return durations.plan_trial(state.highest)
    if not state.precise:
        return durations.plan_trial(_next_rate(state))
    return durations.plan_trial(state.highest) if state.open_above else plan_confirmation(state)


def plan_confirmation(state: SearchState) -> PlannedTrial:
    """Return the confirmation trial: a full trial at the lower end of the interval, with number 0.

    Its rate is q50 * (q2.5 / q50) ** confirmation_reach, with the quantiles of the posterior, limited to the range.
    """
    low, middle = state.known_observations.quantiles(0.025, 0.5)
    low = middle * (low / middle) ** state.parameters.confirmation_reach
    rate = min(state.highest, max(low, state.bracketing.lowest))
    return TwoCounterDurations(state.problem, state.parameters).plan_trial(rate, "confirm")


def _warm_up_rate(state: SearchState) -> float:
    parameters, bracketing = state.parameters, state.bracketing
    if state.observations is not None:
        return parameters.warm_up_load * state.observations.quantiles(0.5)[0]
    if state.stage == "highest rate":
        return state.highest / 2
    load = parameters.hinted_load if state.hinted else parameters.warm_up_load
    return load * (bracketing.centre or bracketing.rate)


def _check_rate(state: SearchState) -> float:
    assert state.bracketing.centre is not None
    return min(state.parameters.check_load * state.bracketing.centre, state.highest)


def _next_rate(state: SearchState) -> float:
    """Return a rate above the median, since an overloaded trial gives an estimate and a sustained one only a bound."""
    observations, lowest = state.known_observations, state.bracketing.lowest
    if state.breach is not None:
        return state.breach
    share = 0.5 if observations.breached else state.parameters.next_share
    middle, rate = observations.quantiles(0.5, share)
    if middle < NEAR_LOWEST * lowest:
        return lowest
    return min(state.highest, max(rate, lowest))
