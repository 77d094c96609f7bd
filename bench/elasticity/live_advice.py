"""Advice from a short calibration: a run of kind elasticity, whose workers counted what they did in which useful time.

A map finds the maximum of a system by trials, of half a minute each. Here the true rate of a worker follows from its
counters, as in DS2, whether it was busy or not. What a busy worker, or one of many, does otherwise is not seen.
"""

import math
from collections.abc import Sequence

from msgspec import Struct

from bench.elasticity.advice import Advice, Amount, Deployed, Question, why_link_is_full
from bench.elasticity.live_run import worker_rates
from bench.elasticity.parallelism import round_up
from bench.elasticity.policy_run import Decision
from bench.units import seconds_text, size_text

MIN_INTERVALS = 6
"""The median of fewer has no 95 % interval."""
TAIL = 0.025


class CountedWork(Struct, frozen=True):
    """The work of the workers of one system in a run of kind elasticity."""

    system: str
    deployed: Deployed
    """of one worker"""
    message_bytes: int
    cpu_seconds: float
    throttled: bool
    """whether they slept for a part of the cost, so that nothing is known of cores"""
    decisions: Sequence[Decision]


def advise_from_workers(question: Question, work: CountedWork) -> Advice:
    """Return the advice for one system, from the true rate of its workers at this message size and CPU cost."""
    point = work.message_bytes, work.cpu_seconds
    rates = sorted(worker_rates(work.decisions))
    known = Advice(system=work.system, measured=work.deployed)
    if point != (question.message_bytes, question.cpu_seconds):
        measured = f"{size_text(point[0])}, {seconds_text(point[1])}"
        return _refuse(known, f"its workers were measured at {measured} alone")
    if len(rates) < MIN_INTERVALS:
        return _refuse(known, f"{len(rates)} intervals in which messages were processed; {MIN_INTERVALS} are needed")
    if reason := why_link_is_full(question, work.deployed):
        return _refuse(known, reason)
    low, middle, high = median_interval(rates)
    workers = Amount(round_up(question.capacity_hz / low), round_up(question.capacity_hz / high))
    most = max(decision.instances for decision in work.decisions)
    return Advice(
        system=work.system,
        workers=workers,
        cores=Amount() if work.throttled else workers,
        measured=work.deployed,
        low_hz=low,
        estimate_hz=middle,
        high_hz=high,
        extrapolated=("cores",) if (workers.enough or 0) > most else (),
        notes=_notes(work, len(rates), most),
    )


def median_interval(ordered: Sequence[float]) -> tuple[float, float, float]:
    """Return the low end of the 95 % interval of a median, the median, and the high end, of MIN_INTERVALS values.

    It needs no assumption about their distribution: the number of values below the median is binomial.
    """
    count, below, rank = len(ordered), 0.0, 0
    while (below := below + math.comb(count, rank) / 2**count) <= TAIL:
        rank += 1
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    return ordered[rank - 1], middle, ordered[count - rank]


def _refuse(known: Advice, reason: str) -> Advice:
    return Advice(system=known.system, measured=known.measured, reason=reason)


def _notes(work: CountedWork, intervals: int, most: int) -> tuple[str, ...]:
    ran = f"{intervals} intervals with {most} worker{'' if most == 1 else 's'} at most"
    rests = f"rests on the true rate of a worker (messages by useful time) in {ran}; a busy one is assumed to keep it"
    if work.throttled:
        return rests, "its workers were throttled: nothing is known of cores"
    return rests, "cores are those of the workers; the source and the load generator need some, too"
