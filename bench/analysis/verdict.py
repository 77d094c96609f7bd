"""The verdict on one trial: sustained, overloaded (why) or invalid (why), by the same rules for every system.

The backlog and the batches are judged by bench.analysis.stability alone; this module adds the rules about deaths,
delivery, latency, other work on the machine and the load generator. Definition of a sustained rate: Karimov et al.,
"Benchmarking Distributed Stream Data Processing Systems" (ICDE 2018).
"""

from statistics import median
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.foreign_work import DEATHS, explainable_delay, explainable_loss, foreign_share
from bench.analysis.late_generator import as_sent, offered_share, pushed_back, stall_explains, stall_loss
from bench.analysis.stability import MAX_LOSS, assess_stability
from bench.config.scenario import Objectives
from bench.model.measurement import Measurement

VerdictKind = Literal["sustained", "overloaded", "invalid"]
Cause = Literal["", "other work", "generator", "harness"]
BACKLOG_GREW, BATCHES_GREW, PUSHED_BACK = "backlog grew", "batches grew", "the source pushed back"
NOT_DRAINED = "did not drain"
"""Reasons of an overload that concern the backlog."""
GENERATOR_LATE = "generator"
"""Reason of an invalid trial in which the load generator was late, and the source did not push back."""
TOO_SHORT = "too short to tell"
"""Reason of an invalid trial in which fewer batches were completed than show an overload."""


class Verdict(Struct, frozen=True):
    """The judgement of one trial; `loss` is the share of the offered rate that the system did not process."""

    word: VerdictKind
    why: str = ""
    loss: float = 0.0
    cause: Cause = ""
    """of an invalid trial: what may have determined it instead of the system"""
    explained: float = 0.0
    """the part of `loss` that foreign work may have caused: alone, the system would have lost at least the rest"""


class Rules(Struct, frozen=True):
    """Objectives of a sustained rate, and the relative width to which rates are told apart."""

    objectives: Objectives = Objectives()
    precision: float = 0.05


MIN_OFFERED_SHARE = 0.98
"""Below this share of the due messages the generator was the limit of the trial, not the system."""
CPU_COST_TOLERANCE = 0.01
"""Greatest relative difference between the CPU seconds that messages used and those requested."""
MIN_DRAIN_RATIO = 1.4
"""From this multiple of the load's duration on, the time until all is processed gives a better estimate than the
window."""


def judge(measurement: Measurement, rules: Rules) -> Verdict:
    """Return the verdict on a trial.

    The first of these that applies decides: invalid through the harness's fault; death of framework or source; lost,
    duplicated, corrupted, reordered or refused messages; growth of the backlog; missed latency objective. An overload
    that foreign work or a late generator can explain is invalid; a sustained rate is sustained whatever else ran.
    """
    ours = (_check_harness, _check_death, _check_delivery, _check_foreign_work, _check_late_generator)
    for check in (*ours, _check_backlog, _check_latency):
        verdict = check(measurement, rules)
        if verdict is not None:
            return verdict
    return Verdict("sustained")


def _check_harness(measurement: Measurement, rules: Rules) -> Verdict | None:
    """Return "invalid" if the harness or its machine, not the system, determined the result."""
    if measurement.ended == "load died":
        return Verdict("invalid", "the load died", cause="harness")
    if measurement.ended == "host gone":
        return Verdict("invalid", measurement.note, cause="harness")
    if measurement.offered == 0:
        return Verdict("invalid", "nothing was offered", cause="harness")
    requested, used = measurement.cpu_requested_s, measurement.cpu_used_s
    if used is not None and requested > 0.1 and abs(used / requested - 1) > CPU_COST_TOLERANCE:
        if explainable_loss(measurement) > 0:  # a thread's clock goes on while its core is stolen
            return _blame_foreign_work(measurement)
        why = f"messages used {used / requested:.3f} of the requested CPU time"
        return Verdict("invalid", why, cause="harness")
    sent, too_many_refused = offered_share(measurement), measurement.failed > rules.objectives.loss
    if measurement.ended in DEATHS:  # what is dead takes no messages
        return None
    if sent < MIN_OFFERED_SHARE and not pushed_back(measurement) and not too_many_refused:
        if 1 - sent <= explainable_loss(measurement):
            return _blame_foreign_work(measurement)
        return Verdict("invalid", GENERATOR_LATE, cause="generator")
    return None


def _blame_foreign_work(measurement: Measurement) -> Verdict:
    return Verdict("invalid", f"other work took {foreign_share(measurement):.0%} of a machine", cause="other work")


def _check_death(measurement: Measurement, _: Rules) -> Verdict | None:
    if measurement.ended in DEATHS:
        return Verdict("overloaded", measurement.ended.replace("framework ", ""), _loss_until_end(measurement))
    return None


def _check_delivery(measurement: Measurement, rules: Rules) -> Verdict | None:
    """Judge the delivery counts; losses only in a drained trial, since messages that still wait are not lost."""
    if measurement.failed > rules.objectives.loss:
        loss = max(_loss_until_end(measurement), 0.01)
        return Verdict("overloaded", f"the source refused {measurement.failed} messages", loss)
    if measurement.drained:
        counts = {
            "lost": measurement.lost,
            "duplicated": measurement.duplicated,
            "corrupted": measurement.corrupted,
            "out_of_order": measurement.out_of_order,
        }
        exact = measurement.counts_exact  # "at least 2 lost" cannot show that a limit of 5 is kept
        allowed = {"lost": rules.objectives.loss - measurement.failed if exact else 0}  # refused ones are lost, too
        least = "" if exact else "at least "
        wrong = [f"{least}{count} {what}" for what, count in counts.items() if count > allowed.get(what, 0)]
        if wrong:
            return Verdict("overloaded", ", ".join(wrong), _loss_until_end(measurement))
    return None


def _check_foreign_work(measurement: Measurement, rules: Rules) -> Verdict | None:
    """Return "invalid" for an overload that foreign work can explain; a larger one with the part that it explains."""
    explainable = explainable_loss(measurement)
    if explainable <= 0:
        return None
    verdict = _check_backlog(measurement, rules)
    if verdict is not None and verdict.word == "overloaded":
        if verdict.loss <= explainable:
            return _blame_foreign_work(measurement)
        return _check_late_generator(measurement, rules) or replace(verdict, explained=explainable)
    verdict, limit, p99 = _check_latency(measurement, rules), rules.objectives.p99, measurement.from_due.p99
    if verdict is None or limit is None or p99 is None or p99 - limit > explainable_delay(measurement):
        return None
    return _blame_foreign_work(measurement)


def _check_late_generator(measurement: Measurement, rules: Rules) -> Verdict | None:
    """Return "invalid" for a growth of the backlog that messages not sent, or sent after a stall, can explain."""
    verdict = _check_backlog(measurement, rules)
    if verdict is None or verdict.word != "overloaded" or verdict.why == PUSHED_BACK:
        return None
    stalled = stall_loss(measurement)
    if stalled > 0 and verdict.loss <= stalled + explainable_loss(measurement):
        return _blame_stall(measurement)
    seen = as_sent(measurement)
    if seen is None or _check_backlog(seen, rules) is not None:
        return None
    return Verdict("invalid", GENERATOR_LATE, cause="generator")


def _blame_stall(measurement: Measurement) -> Verdict:
    return Verdict("invalid", f"the generator stalled for {measurement.stalled:.3g} s", cause="generator")


def _check_backlog(measurement: Measurement, rules: Rules) -> Verdict | None:
    if measurement.ended == "hopeless":
        return Verdict("overloaded", BACKLOG_GREW, _loss_by_drain(measurement) or _loss_until_end(measurement))
    stability = assess_stability(measurement, rules.precision, keep_interval=rules.objectives.batches == "keep")
    if stability.inconsistent:
        return Verdict("invalid", "the counters contradict themselves", cause="harness")
    if stability.overloaded:
        why = BATCHES_GREW if stability.grew else BACKLOG_GREW
        return Verdict("overloaded", why, _loss_by_drain(measurement) or stability.loss)
    if offered_share(measurement) < MIN_OFFERED_SHARE:
        loss = _loss_by_drain(measurement) or max(stability.loss, 1 - offered_share(measurement))
        return Verdict("overloaded", PUSHED_BACK, loss)
    if not measurement.drained:
        return Verdict("overloaded", NOT_DRAINED, stability.loss)
    return Verdict("invalid", TOO_SHORT) if stability.too_short else None


def _check_latency(measurement: Measurement, rules: Rules) -> Verdict | None:
    limit, p99 = rules.objectives.p99, measurement.from_due.p99
    if limit is not None and p99 is None and measurement.processed:
        why = "no latency is known: the framework's hosts have clocks of their own"
        return Verdict("invalid", why, cause="harness")
    if limit is not None and p99 is not None and p99 > limit:
        if stall_explains(measurement, limit):
            return _blame_stall(measurement)
        return Verdict("overloaded", f"p99 {p99:.3g} s above {limit:g} s")
    return None


def _estimate_drift(rows: list[tuple[float, int]]) -> float:
    """Return the growth of the backlog in messages/s, between the medians of its first and last quarter.

    With fewer than eight samples: between the first and the last one.
    """
    span = rows[-1][0] - rows[0][0]
    if span <= 0:
        return 0.0
    quarter = len(rows) // 4
    if quarter < 2:
        return (rows[-1][1] - rows[0][1]) / span
    first, last = (median(b for _, b in part) for part in (rows[:quarter], rows[-quarter:]))
    return (last - first) / (span * (len(rows) - quarter) / (len(rows) - 1))


def _loss_by_drain(measurement: Measurement) -> float | None:
    """Return the loss of a system that was still processing long after the load had stopped; None otherwise.

    It was busy all the time, so the messages processed in all divided by that time estimate its capacity better than
    the few instants at which a batching system shows progress within the window.
    """
    series, done = measurement.series, measurement.processed + measurement.corrupted
    drained = measurement.drained or measurement.purged  # in both it was busy for as long as it was followed
    if not (drained and series.at and done) or measurement.sent == 0:
        return None
    rows = zip(series.at, series.processed, strict=True)
    finished = next((at for at, processed in rows if processed >= done), series.at[-1])
    loaded = measurement.sent_s
    if finished < MIN_DRAIN_RATIO * loaded + measurement.batch_interval:
        return None
    capacity = done / (finished - measurement.batch_interval)
    return min(MAX_LOSS, max(0.0, 1 - capacity / measurement.planned.rate))


def _loss_until_end(measurement: Measurement) -> float:
    """Return the loss that the drift shows over the offered part of an unfinished trial."""
    series, settle = measurement.series, measurement.planned.settle
    end = measurement.offered_s  # later rows belong to the drain
    rows = [
        (at, o - p) for at, o, p in zip(series.at, series.offered, series.processed, strict=True) if at <= end + 1e-9
    ]
    rows = [row for row in rows if row[0] >= min(settle, rows[-1][0] / 2)]
    if len(rows) < 2:
        return 0.0
    return min(MAX_LOSS, max(0.0, _estimate_drift(rows) / measurement.planned.rate))
