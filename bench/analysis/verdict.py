"""The verdict on one trial: sustained, overloaded (why) or invalid (why), by the same rules for every system.

Backlog is offered - processed; offered is counted from the due times, so that back-pressure cannot hide an overload. A
rate is sustained when the backlog has no drift over the window *and* returned to its initial minimum: a queue that
never empties is the surest sign of overload, a slope alone is weakest exactly at the limit. Definition: Karimov et al.,
"Benchmarking Distributed Stream Data Processing Systems" (ICDE 2018). Rules and constants: the project's
max-rate-search reference, section 4.
"""

from statistics import median
from typing import Literal

from msgspec import Struct

from bench.config.scenario import Objectives
from bench.model.measurement import Measurement, Series

VerdictKind = Literal["sustained", "overloaded", "invalid"]


class Verdict(Struct, frozen=True):
    """The judgement of one trial; `loss` is the share of the offered rate that the system did not process."""

    word: VerdictKind
    why: str = ""
    loss: float = 0.0


class Rules(Struct, frozen=True):
    """Objectives of a sustained rate, and the relative width to which rates are told apart."""

    objectives: Objectives = Objectives()
    precision: float = 0.05


BACKLOG_GREW = "backlog grew"
DEATHS = ("framework died", "source died")
MIN_OFFERED_SHARE = 0.98
"""Below this share of the due messages the generator was the limit of the trial, not the system."""
CPU_COST_TOLERANCE = 0.01
"""Greatest relative difference between the CPU seconds that messages used and those requested."""
BATCH_JITTER = 0.1
"""In batch intervals of traffic: variation of the backlog from batch to batch in a window of four; in longer ones far
less."""
MIN_DRAIN_RATIO = 1.4
"""From this multiple of the load's duration on, the time until all is processed gives a better estimate than the
window."""
MAX_FOREIGN_SHARE = 0.2
"""Above this share of CPU time spent on foreign work (or stolen by the host), the trial did not measure this
machine."""
MIN_FOREIGN_SHARE, MIN_FULL_SHARE = 0.03, 0.97
"""On a fully used machine, foreign work lowers the maximum rate by its own share. Above this foreign share, or half the
precision if that is larger, an overload may be the foreign work's."""
MAX_LOSS = 0.999


class BacklogJudgement(Struct, frozen=True):
    """The judgement of a backlog over a window; `loss` is its drift as a share of the offered rate."""

    overloaded: bool
    loss: float


def judge(measurement: Measurement, rules: Rules) -> Verdict:
    """Return the verdict on a trial.

    The first of these that applies decides: invalid through the harness's fault; death of framework or source; lost,
    duplicated, corrupted, reordered or refused messages; foreign work on a full machine; growth of the backlog; missed
    latency objective.
    """
    checks = (_check_harness, _check_death, _check_delivery, _check_foreign_work, _check_backlog, _check_latency)
    for check in checks:
        verdict = check(measurement, rules)
        if verdict is not None:
            return verdict
    return Verdict("sustained")


def judge_backlog(measurement: Measurement, precision: float) -> BacklogJudgement:
    """Judge the backlog of the window by its drift and its minimum.

    Overloaded if the minimum over the last 60 % exceeds that over the first third by more than the slack, *and* the
    drift exceeds its threshold. The backlog is read after completed batches, or at 16 instants of a continuous system.

    Args:
        measurement: The trial; rates in messages/s, times in seconds.
        precision: Relative width to which rates are told apart; slack and threshold grow with it.
    """
    planned = measurement.planned
    rows = _backlog_samples(
        measurement.series, planned.settle, planned.settle + planned.window, measurement.batch_interval
    )
    if len(rows) < 3:
        return _judge_few_samples(measurement)
    backlog = [float(b) for _, b in rows]
    drift = _estimate_drift(rows)
    minimum = min(backlog[: max(1, len(rows) // 3)])
    late_minimum = min(backlog[int(len(rows) * 0.4) :])
    slack = max(0.004, 0.04 * precision) * planned.rate * planned.window
    batches = min(1.0, 4 * measurement.batch_interval / planned.window)
    jitter = 2 + BATCH_JITTER * measurement.batch_interval * planned.rate * batches**2
    grew = late_minimum > minimum + slack + jitter and drift > max(0.002, 0.1 * precision) * planned.rate
    return BacklogJudgement(grew, min(MAX_LOSS, max(0.0, drift / planned.rate)))


def _check_harness(measurement: Measurement, _: Rules) -> Verdict | None:
    """Return "invalid" if the harness or its machine, not the system, determined the result."""
    if measurement.ended == "load died":
        return Verdict("invalid", "the load died")
    if measurement.ended == "host gone":
        return Verdict("invalid", measurement.note)
    if measurement.offered == 0:
        return Verdict("invalid", "nothing was offered")
    requested, used = measurement.cpu_requested_s, measurement.cpu_used_s
    if requested > 0.1 and abs(used / requested - 1) > CPU_COST_TOLERANCE:
        return Verdict("invalid", f"messages used {used / requested:.3f} of the requested CPU time")
    if _foreign_share(measurement) > MAX_FOREIGN_SHARE:
        return Verdict("invalid", f"other work took {_foreign_share(measurement):.0%} of this machine")
    if _offered_share(measurement) < MIN_OFFERED_SHARE and not _pushed_back(measurement) and not measurement.failed:
        return Verdict("invalid", "generator")
    return None


def _foreign_share(measurement: Measurement) -> float:
    """Return the share of the machine's CPU time that other work took, or that was stolen by its host."""
    cpu = measurement.cpu
    if not cpu.get("available") or measurement.ended in DEATHS:  # the CPU time of a dead process is not recorded
        return 0.0
    ours = sum(cpu.get(role, 0.0) for role in ("framework", "source", "load", "harness", "kernel"))
    return max(0.0, cpu["busy"] + cpu["steal"] - ours) / cpu["available"]


def _offered_share(measurement: Measurement) -> float:
    """Return the share of the messages due in the window that had been sent at its end; one message may be late."""
    late = measurement.late * measurement.planned.rate
    return 1 - max(0.0, late - 1) / measurement.offered


def _pushed_back(measurement: Measurement) -> bool:
    """Return True if the time in which the source accepted no messages explains the generator's lateness."""
    return measurement.blocked >= 0.9 * measurement.late


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
        allowed = {"lost": rules.objectives.loss}
        wrong = [f"{count} {what}" for what, count in counts.items() if count > allowed.get(what, 0)]
        if wrong:
            return Verdict("overloaded", ", ".join(wrong), _loss_until_end(measurement))
    return None


def _check_foreign_work(measurement: Measurement, rules: Rules) -> Verdict | None:
    """Return "invalid" for an overload that foreign work on a full machine can explain.

    It can explain a loss of up to three times its share.
    """
    foreign, allowed = _foreign_share(measurement), max(MIN_FOREIGN_SHARE, rules.precision / 2)
    if foreign <= allowed or measurement.cpu["busy"] <= MIN_FULL_SHARE * measurement.cpu["available"]:
        return None
    verdict = _check_backlog(measurement, rules) or _check_latency(measurement, rules)
    if verdict is None or verdict.loss > 3 * foreign:
        return None
    return Verdict("invalid", f"other work took {foreign:.0%} of a full machine")


def _check_backlog(measurement: Measurement, rules: Rules) -> Verdict | None:
    if measurement.ended == "hopeless":
        return Verdict("overloaded", BACKLOG_GREW, _loss_by_drain(measurement) or _loss_until_end(measurement))
    judgement = judge_backlog(measurement, rules.precision)
    if judgement.overloaded:
        return Verdict("overloaded", BACKLOG_GREW, _loss_by_drain(measurement) or judgement.loss)
    if _offered_share(measurement) < MIN_OFFERED_SHARE:
        loss = _loss_by_drain(measurement) or max(judgement.loss, 1 - _offered_share(measurement))
        return Verdict("overloaded", "the source pushed back", loss)
    if not measurement.drained:
        return Verdict("overloaded", "did not drain", judgement.loss)
    return None


def _check_latency(measurement: Measurement, rules: Rules) -> Verdict | None:
    limit, p99 = rules.objectives.p99, measurement.from_due.p99
    if limit is not None and p99 is None and measurement.processed:
        return Verdict("invalid", "no latency is known: the framework's hosts have clocks of their own")
    if limit is not None and p99 is not None and p99 > limit:
        return Verdict("overloaded", f"p99 {p99:.3g} s above {limit:g} s")
    return None


def _judge_few_samples(measurement: Measurement) -> BacklogJudgement:
    """Judge a window of few samples: overloaded if over half of the offered messages were not processed."""
    planned, series = measurement.planned, measurement.series
    begin = planned.settle
    rows = [row for row in zip(series.at, series.offered, series.processed, strict=True) if row[0] >= begin]
    rows = [row for row in rows if row[0] <= begin + planned.window]
    if not rows:
        return BacklogJudgement(overloaded=False, loss=0.0)
    growth = (rows[-1][1] - rows[-1][2]) - (rows[0][1] - rows[0][2])
    share = growth / max(1.0, planned.rate * planned.window)
    return BacklogJudgement(share > 0.5, min(MAX_LOSS, max(0.0, share)))


def _backlog_samples(series: Series, begin: float, end: float, batch_interval: float) -> list[tuple[float, int]]:
    """Return (seconds, backlog) at the instants at which the backlog is meaningful.

    For batches: right after the processed counter moved, without the first such instant when there are more than three.
    Otherwise: 16 instants at equal distances.
    """
    rows = list(zip(series.at, series.offered, series.processed, strict=True))
    pairs = zip([(0.0, 0, 0), *rows[:-1]], rows, strict=True)
    if batch_interval > 0:
        rows = [row for before, row in pairs if row[2] > before[2]]
        samples = [(at, offered - processed) for at, offered, processed in rows if begin <= at <= end]
        return samples[1:] if len(samples) > 3 else samples
    step, due, samples = (end - begin) / 16, begin, []
    for at, offered, processed in rows:
        if due <= at <= end:
            samples.append((at, offered - processed))
            due = at + step * 0.99
    return samples


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
    loaded = measurement.sent / measurement.planned.rate
    if finished < MIN_DRAIN_RATIO * loaded + measurement.batch_interval:
        return None
    capacity = done / (finished - measurement.batch_interval)
    return min(MAX_LOSS, max(0.0, 1 - capacity / measurement.planned.rate))


def _loss_until_end(measurement: Measurement) -> float:
    """Return the loss that the drift shows over the offered part of an unfinished trial."""
    series, settle = measurement.series, measurement.planned.settle
    end = measurement.offered / measurement.planned.rate  # later rows belong to the drain
    rows = [
        (at, o - p) for at, o, p in zip(series.at, series.offered, series.processed, strict=True) if at <= end + 1e-9
    ]
    rows = [row for row in rows if row[0] >= min(settle, rows[-1][0] / 2)]
    if len(rows) < 2:
        return 0.0
    return min(MAX_LOSS, max(0.0, _estimate_drift(rows) / measurement.planned.rate))
