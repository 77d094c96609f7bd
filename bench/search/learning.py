"""The state of a two-counter search after one more trial. Reference: max-rate-search, sections 3, 4 and 7."""

import math

from msgspec.structs import replace

from bench.analysis.stability import Stability
from bench.analysis.verdict import Verdict
from bench.model.measurement import Measurement, Series
from bench.search.objectives import AssessedTrial
from bench.search.posterior import OUTLIER_DENSITY, Observation
from bench.search.problem import Step
from bench.search.state import End, SearchState
from bench.search.trial_summary import sent_rate

BACKLOG_REASONS = ("backlog grew", "the source pushed back", "did not drain")
"""Reasons of a verdict "overloaded" that concern the backlog; any other reason is a breach of another objective."""
MAX_HINT_SDS = 2.5
"""A check whose estimate is farther from the hint, in standard deviations of the hint, contradicts it."""
MAX_LOWEST_FAILURES = 2
MIN_ESTIMATE_S, ABORTED_LOSS_SHARE = 10.0, 0.5
"""A trial aborted within fewer seconds gives no estimate; this share of its loss is taken as certain."""
MIN_LOSS = 0.005
"""An overloaded trial with a smaller loss counts as sustained."""


def learn(state: SearchState, step: Step) -> SearchState:
    """Return the state after a trial.

    Deaths and invalid trials are counted and tell nothing about the capacity. A late generator is tried again once:
    it may have met other work on its machine. All other trials are assessed and change the state according to its
    stage.

    Args:
        state: The state in which the trial was planned.
        step: The trial, with its series of counters, and its verdict.
    """
    measurement, verdict = step.measurement, step.verdict
    if measurement.ended in ("framework died", "source died"):
        deaths = state.deaths + 1
        return replace(state, deaths=deaths, cold=True, end="died" if deaths >= state.parameters.max_deaths else "")
    if verdict.word == "invalid" and verdict.why == "generator":
        return replace(_learn_late_generator(state, measurement), invalid=0)
    stability = state.assess(measurement)
    if state.low_budget and verdict.word == "overloaded" and verdict.why in BACKLOG_REASONS:
        stability = replace(
            stability, overloaded=True, loss=verdict.loss or stability.loss
        )  # the verdict includes the drain
    if verdict.word == "invalid" or stability.inconsistent:
        invalid = state.invalid + 1
        end: End = "invalid" if invalid >= state.parameters.max_invalid else ""
        return replace(state, invalid=invalid, cold=state.cold or measurement.leaves_cold, end=end)
    return _learn_valid(state, measurement, verdict, stability)


def _learn_valid(state: SearchState, measurement: Measurement, verdict: Verdict, stability: Stability) -> SearchState:
    restarted = measurement.leaves_cold
    if measurement.planned.purpose == "warm-up":
        return _learn_warm_up(replace(state, cold=restarted, invalid=0, late_at=None), stability)
    assessed = AssessedTrial(replace(measurement, series=Series()), stability)
    trials = (*state.assessed_trials, assessed)
    state = replace(state, assessed_trials=trials, cold=restarted or state.cold, invalid=0, late_at=None)
    if state.stage == "bracketing":
        return _learn_probe(state, measurement, verdict, stability)
    if state.stage == "check":
        return _learn_check(
            state, measurement.planned.rate, stability, _observe(state, measurement, verdict, stability)
        )
    return _learn_trial(state, measurement, verdict, stability)


def _learn_late_generator(state: SearchState, measurement: Measurement) -> SearchState:
    """Return the state after the generator was late: late again at the same rate, it is the limit."""
    if state.late_at != measurement.planned.rate:
        return replace(state, late_at=measurement.planned.rate)
    highest = state.parameters.generator_share * sent_rate(measurement)
    if highest < state.bracketing.lowest:
        return replace(state, end="invalid")
    return state.limit_generator(min(highest, 0.99 * state.highest))


def _learn_warm_up(state: SearchState, stability: Stability) -> SearchState:
    """Return the state after a warm-up; a large loss shows that the centre is too high."""
    centre = state.bracketing.centre
    if state.stage == "check" and stability.loss > state.parameters.bracket_stop and centre is not None:
        centre = max(state.bracketing.lowest, centre * (1 - stability.loss))
        return replace(state, bracketing=replace(state.bracketing, centre=centre), hinted=False)
    return state


def _learn_probe(state: SearchState, measurement: Measurement, verdict: Verdict, stability: Stability) -> SearchState:
    """Return the state after a bracketing probe."""
    probe = _observe(state, measurement, verdict, stability)
    if (
        state.low_budget and probe.kind == "at least"
    ):  # a drift that the verdict tolerates does not end a short bracketing
        stability = replace(stability, loss=0.0)
    parameters = state.parameters.for_low_budget if state.low_budget else state.parameters
    aborted = not state.low_budget and stability.seconds < parameters.probe * 0.9
    loss = None if _is_breach(verdict, stability) else stability.loss
    bracketing = state.bracketing.add_probe(loss, parameters, aborted=aborted)
    state = replace(state, probes=(*state.probes, probe), bracketing=bracketing)
    if bracketing.centre is None:
        return state
    if bracketing.centre >= state.highest:
        return replace(state, stage="highest rate", cold=True)
    if not state.low_budget:
        return replace(state, stage="check", cold=True)
    return state.with_prior(bracketing.centre, parameters.low_budget_sd, cold=False).add_observations(*state.probes)


def _learn_check(state: SearchState, rate: float, stability: Stability, observation: Observation) -> SearchState:
    """Return the state after the probe of a warm system that checks the centre."""
    parameters, centre = state.parameters, state.bracketing.centre
    assert centre is not None
    if observation.kind == "at least" and stability.loss <= parameters.bracket_loss and rate < state.highest:
        bracketing = state.bracketing.restart_above(rate, parameters)
        state = replace(state, bracketing=bracketing, hinted=False)
        if bracketing.centre is None:
            return replace(state, stage="bracketing")
        return state.with_prior(bracketing.centre, parameters.prior_sd, cold=state.cold).add_observations(observation)
    estimate = rate * (1 - stability.loss)
    if state.hinted and abs(math.log(estimate / centre)) > MAX_HINT_SDS * parameters.hint_sd:
        bracketing = replace(state.bracketing, centre=max(state.bracketing.lowest, estimate))
        return replace(state, bracketing=bracketing, hinted=False, cold=True)
    sd = parameters.hint_sd if state.hinted else parameters.prior_sd
    return state.with_prior(centre, sd, cold=state.cold).add_observations(observation)


def _learn_trial(state: SearchState, measurement: Measurement, verdict: Verdict, stability: Stability) -> SearchState:
    """Return the state after a full trial or a confirmation trial."""
    rate, sustained = measurement.planned.rate, not stability.overloaded and verdict.word == "sustained"
    if _is_breach(verdict, stability) and state.breach != rate:
        return replace(state, breach=rate)
    observation = _observe(state, measurement, verdict, stability)
    if state.observations is None:
        state = state.with_prior(observation.rate, state.parameters.prior_sd, cold=state.cold)
    failures = state.lowest_failures + (rate <= 1.01 * state.bracketing.lowest)
    state = replace(state.add_observations(observation), breach=None, lowest_failures=failures)
    confirming = measurement.planned.purpose == "confirm"
    if sustained:
        confirmed = max(rate, state.confirmed or 0) if confirming else state.confirmed
        state = replace(state, lowest_failures=0, confirmed=confirmed)
    elif confirming or (state.confirmed is not None and rate <= state.confirmed):
        state = replace(state, confirmed=None, failed_confirmations=state.failed_confirmations + confirming)
    return replace(state, end=_find_end(state, rate, sustained=sustained, confirming=confirming))


def _observe(state: SearchState, measurement: Measurement, verdict: Verdict, stability: Stability) -> Observation:
    """Return the observation of the capacity that a trial gives."""
    rate, seconds = measurement.planned.rate, max(stability.seconds, 1.0)
    if measurement.ended == "hopeless" and stability.seconds < MIN_ESTIMATE_S and not state.low_budget:
        return Observation("aborted", rate * (1 - ABORTED_LOSS_SHARE * stability.loss), seconds)
    if stability.overloaded and stability.loss > MIN_LOSS:
        density = state.parameters.low_budget_outlier_density if state.low_budget else OUTLIER_DENSITY
        estimate = rate * (1 - stability.loss)
        return Observation("estimate", estimate, seconds, stability.slice_rates, stability.slice_seconds, density)
    if verdict.word == "overloaded" and verdict.why in BACKLOG_REASONS:  # the verdict also considers the drain
        return Observation("aborted", rate, seconds)
    return Observation("at most" if _is_breach(verdict, stability) else "at least", rate, seconds)


def _find_end(state: SearchState, rate: float, *, sustained: bool, confirming: bool) -> End:
    """Return the reason why the search ends with the trial at `rate`; "" if it goes on."""
    observations, parameters = state.known_observations, state.parameters
    if state.lowest_failures >= MAX_LOWEST_FAILURES:
        return "lowest rate"
    if (
        state.failed_confirmations >= parameters.max_confirmations
        or observations.count_outliers(parameters.outlier_sds) >= parameters.max_outliers
        or observations.count_contradictions(parameters.contradiction_sds) >= parameters.max_contradictions
    ):
        return "unstable"
    if sustained and rate >= 0.999 * state.highest:
        return "generator" if state.generator_limit is not None else "highest rate"
    return "measured" if sustained and confirming and state.precise and not state.open_above else ""


def _is_breach(verdict: Verdict, stability: Stability) -> bool:
    """Return True if an objective other than the backlog was broken at a rate that the system kept up with."""
    return verdict.word == "overloaded" and verdict.why not in BACKLOG_REASONS and not stability.overloaded
