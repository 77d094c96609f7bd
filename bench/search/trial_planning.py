"""The next trial of a two-counter search, as a function of its evidence."""

import math

from bench.analysis.first_result import FILL_FACTOR
from bench.analysis.foreign_work import explainable_loss
from bench.analysis.verdict import GENERATOR_LATE, TOO_SHORT
from bench.model.measurement import PlannedTrial, Purpose
from bench.search.observations import Evidence
from bench.search.parameters import SearchParameters
from bench.search.problem import Step
from bench.search.settling import settle_seconds, shortest_settle

AFTER_S, AFTER_BATCHES = 0.2, 1.2
"""Time after the load of a sustained trial until everything is processed."""
MAX_GUESSED_EXCESS = 0.2
"""Share by which a rate is assumed to exceed the capacity, at most, while no trial has shown the capacity."""
OVERLOADED_BATCHES = 1.0
"""Additional time after the load of a trial somewhat beyond the capacity."""


def plan_trial(evidence: Evidence) -> PlannedTrial | None:
    """Return the next trial of a search that goes on; None if the time that is left is too short for it."""
    if evidence.is_precise:
        return _plan_confirmation(evidence)
    rate = _next_rate(evidence)
    return _plan(evidence, rate, _window(evidence, rate), "search")


def _plan_confirmation(evidence: Evidence) -> PlannedTrial | None:
    """Return a trial at the lower end of the interval, once; None where time is short."""
    parameters, budget = evidence.parameters, float(evidence.problem.search.budget)
    low = evidence.interval[0]
    confirmed = evidence.confirmed or 0.0
    tried = any(step.measurement.planned.purpose == "confirm" for step in evidence.steps)
    if budget < parameters.confirmation_budget or confirmed >= 0.98 * low or tried:
        return None
    rate = _clamp_rate(evidence, low)
    window, shortest = _window(evidence, rate), _shortest_window(evidence, _settle(evidence, rate))
    confirming = None if window is None else min(window, max(shortest, parameters.longest_confirmation))
    return _plan(evidence, rate, confirming, "confirm")


def _plan(evidence: Evidence, rate: float, window: float | None, purpose: Purpose) -> PlannedTrial | None:
    if window is None:
        return None
    settle = _settle(evidence, rate)
    return PlannedTrial(len(evidence.steps), float(rate), settle, math.floor(10 * window + 1e-6) / 10, purpose)


def _settle(evidence: Evidence, rate: float) -> float:
    """Return the time before the window.

    A short one while no trial was overloaded and no neighbour shows the range, and for a first trial that would have no
    time for a longer one: it gives a bound.
    """
    problem, parameters = evidence.problem, evidence.parameters
    shortest, settle = shortest_settle(problem, parameters), settle_seconds(problem, parameters, rate)
    if problem.timing.settle is None:  # until the latency has filled up
        latency = min((step.latency_s for step in evidence.steps if step.latency_s), default=0.0)
        shortest, settle = (max(each, math.ceil(10 * FILL_FACTOR * latency) / 10) for each in (shortest, settle))
    if not (evidence.estimates or evidence.overloaded < math.inf or problem.hint_hz is not None):
        return shortest
    after = AFTER_S + AFTER_BATCHES * problem.batch_interval
    is_too_long = seconds_left(evidence) < settle + _shortest_window(evidence, settle) + after
    return shortest if is_too_long and not evidence.steps else settle


def _shortest_window(evidence: Evidence, settle: float) -> float:
    """Return the shortest window of a trial with that time before it."""
    parameters, problem = evidence.parameters, evidence.problem
    interval, configured = problem.batch_interval, problem.timing.window
    shortest = max(parameters.window if configured is None else float(configured), parameters.window_batches * interval)
    return max(shortest, (parameters.window_batches + parameters.settle_batches) * interval - settle)


def _window(evidence: Evidence, rate: float) -> float | None:
    """Return the window of a trial at `rate`; None if the time that is left is too short for it."""
    parameters, problem = evidence.parameters, evidence.problem
    interval, configured, settle = problem.batch_interval, problem.timing.window, _settle(evidence, rate)
    shortest = _shortest_window(evidence, settle)
    after = AFTER_S + AFTER_BATCHES * interval
    stretch = 1 + _excess(evidence, rate)
    left = (seconds_left(evidence) - after) / stretch - settle
    if left < shortest:
        return None
    if configured is not None:
        return shortest
    hinted, share = problem.hint_hz is not None, 0.0
    if evidence.estimates or evidence.sustained >= 0.999 * evidence.highest:
        share = parameters.trial_share
    elif hinted:
        share = parameters.first_share
    wanted, another = share * left, shortest + settle + after
    if evidence.known and share and left - max(wanted, shortest) < another:  # there is no time for another one
        wanted = left
    longest = max(parameters.longest, parameters.longest_batches * interval)
    by_memory = parameters.trial_bytes / (rate * problem.cell.message_bytes)
    return max(shortest, min(by_memory, max(min(parameters.trial_messages / rate, 0.4 * left), min(wanted, longest))))


def shortest_search(batch_interval: float, parameters: SearchParameters) -> float:
    """Return the seconds of two overloaded trials, with which a search that begins near the capacity has a result."""
    settle = max(parameters.settle, parameters.settle_batches * batch_interval)
    window = max(parameters.window, parameters.window_batches * batch_interval)
    return 2 * (settle + window + AFTER_S + (AFTER_BATCHES + OVERLOADED_BATCHES) * batch_interval)


def seconds_left(evidence: Evidence) -> float:
    """Return the part of the budget that is left, in seconds."""
    return float(evidence.problem.search.budget) - sum(step.measurement.seconds for step in evidence.steps)


def _excess(evidence: Evidence, rate: float) -> float:
    """Return the seconds of drain that each second of load at `rate` probably leaves."""
    hinted = evidence.problem.hint_hz is not None and evidence.known
    if not evidence.estimates and not hinted:
        return 0.0
    excess = max(0.0, rate / evidence.posterior.quantiles(0.4)[0] - 1)
    return excess if evidence.estimates else min(excess, MAX_GUESSED_EXCESS)


def _next_rate(evidence: Evidence) -> float:
    """Return the rate of the next trial: a probe while the capacity is not known, else one near it.

    A lower one than the last two where the generator was late in both of them.
    """
    rate, lower = _wanted_rate(evidence), evidence.parameters.below_disturbed
    late = [step for step in evidence.steps[-2:] if step.verdict.why == GENERATOR_LATE]
    return _clamp_rate(evidence, min(rate, lower * late[-1].measurement.planned.rate)) if len(late) > 1 else rate


def _wanted_rate(evidence: Evidence) -> float:
    last, parameters = evidence.steps[-1] if evidence.steps else None, evidence.parameters
    if last is not None and (_is_first_lateness(evidence) or _is_first_breach(evidence)):
        return last.measurement.planned.rate
    if not evidence.sustained and evidence.overloaded == math.inf and not evidence.estimates:  # nothing that counts yet
        return _clamp_rate(evidence, evidence.problem.start if last is None else _retry_rate(evidence, last))
    if last is not None and last.verdict.cause == "other work":
        return _clamp_rate(evidence, _rate_beside_other_work(evidence, last))
    if not evidence.estimates:
        return _clamp_rate(evidence, _probe_rate(evidence))
    middle, share = evidence.posterior.quantiles(0.5)[0], parameters.next_share
    if not evidence.sustained:
        return _clamp_rate(evidence, min(parameters.first_load * middle, 0.9 * evidence.overloaded))
    if any(reading.ratio != 1 for reading in evidence.estimates):
        share = parameters.next_batch_share
    rate = min(evidence.posterior.quantiles(share)[0], parameters.max_jump * evidence.sustained)
    if evidence.is_surpassed:  # the overloads do not bound the capacity
        rate = max(min(rate, parameters.growth * evidence.sustained), parameters.beyond_shown * evidence.sustained)
    return _clamp_rate(evidence, rate)


def _rate_beside_other_work(evidence: Evidence, last: Step) -> float:
    """Return the rate after a trial that other work made invalid, at which other work hardly affects the next verdict.

    That is one below all of these trials, where the system keeps up whatever else runs. Where this was sustained, it is
    one so far beyond the capacity that other work does not explain the loss: such a trial shows the capacity. Where
    that is not possible, it is one below the last trial.
    """
    parameters, sustained = evidence.parameters, evidence.sustained
    explained = explainable_loss(last.measurement)
    lowest = min(step.measurement.planned.rate for step in evidence.steps if step.verdict.cause == "other work")
    if sustained < parameters.below_disturbed * lowest:
        return parameters.below_disturbed * lowest
    lower = parameters.below_disturbed * last.measurement.planned.rate
    if explained > parameters.max_explained:
        return lower
    capacity = evidence.posterior.quantiles(0.5)[0] if evidence.estimates else sustained
    beyond = parameters.beyond_disturbed * capacity / (1 - explained)
    return beyond if beyond <= evidence.highest and _window(evidence, beyond) is not None else lower


def _retry_rate(evidence: Evidence, last: Step) -> float:
    """Return the rate after a trial that shows nothing.

    A lower one where batches were too long to complete six, and where other work made two trials invalid at this rate.
    """
    rate, parameters = last.measurement.planned.rate, evidence.parameters
    if last.verdict.why == TOO_SHORT and last.measurement.batch_interval > 0:
        return parameters.shorter_batches * rate
    disturbed = [step for step in evidence.steps[-2:] if step.verdict.cause == "other work"]
    again = len(disturbed) > 1 and disturbed[0].measurement.planned.rate == rate
    return parameters.far_below_disturbed * rate if again else rate


def _probe_rate(evidence: Evidence) -> float:
    parameters, sustained = evidence.parameters, evidence.sustained
    if evidence.overloaded < math.inf:
        low = sustained or evidence.overloaded / parameters.step_down**2
        if evidence.is_rough and low >= parameters.near_quick * evidence.overloaded:
            return parameters.beyond_shown * max(low, evidence.overloaded)
        upper = evidence.overloaded if low < evidence.overloaded else evidence.settled_overload
        return math.sqrt(low * upper) if upper < math.inf else parameters.beyond_shown * low
    full = _rate_of_full_batches(evidence)
    if full is not None:
        return min(max(full, parameters.min_jump * sustained), parameters.max_jump * sustained)
    growth = parameters.growth if evidence.problem.hint_hz is None else parameters.hinted_growth
    return growth * sustained


def _rate_of_full_batches(evidence: Evidence) -> float | None:
    """Return a rate at which batches probably take most of their interval; None without batches that report times.

    It lies on the line through the times of small and large batches, or else half of the smallest one's time is taken
    for its fixed cost.
    """
    light = sorted((reading.rate, reading.ratio) for reading in evidence.known if reading.kind == "estimate")
    if not light:
        return None
    (low, idle), (rate, ratio) = light[0], light[-1]
    line = (ratio - idle) / (rate - low) if rate > 1.5 * low else 0.0
    slope = max(line, ratio / 10 / rate, 0.0) if rate > 1.5 * low else ratio / 2 / rate
    return evidence.parameters.full_batches * (rate + max(0.0, 1 - ratio) / slope)


def _is_first_lateness(evidence: Evidence) -> bool:
    """Return True if the generator was late in the last trial for the first time."""
    return evidence.steps[-1].verdict.why == GENERATOR_LATE and len(evidence.late_rates) == 1


def _is_first_breach(evidence: Evidence) -> bool:
    """Return True if the last trial was overloaded for another objective than the backlog for the first time."""
    return (
        evidence.steps[-1].verdict.word == "overloaded"
        and evidence.readings[-1] is None
        and (evidence.steps[-1].measurement.ended in ("complete", "hopeless"))
    )


def _clamp_rate(evidence: Evidence, rate: float) -> float:
    return min(evidence.highest, max(evidence.lowest, rate))
