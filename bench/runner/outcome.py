"""Results from answers of the search: bounds, sanity, and results of cells without an answer. Pure."""

import math
from collections.abc import Iterable, Set

from msgspec.structs import replace

from bench.analysis.bounds import cpu_bound, reached_bound
from bench.analysis.sanity import BOUND_TOLERANCE, failed_sanity_check
from bench.errors import ImpossibleMeasurementError
from bench.model.cell import Cell
from bench.model.measurement import Measurement, PlannedTrial, Result, Status
from bench.runner.cell_plan import CellPlan
from bench.search.map_budget import LIMITED_SHARE

SAME_RATE = 0.01
"""Relative difference up to which a latency trial was made at the rate that is asked for."""


def finish_result(result: Result, plan: CellPlan, trials: Iterable[Measurement] = ()) -> Result:
    """Return a search's result with what theory says of it, and with what a reader of it must know of its trials.

    A result above a hard bound fails its cell, an interval ends where theory does, and one that reaches what our own
    load generator can do says only that the system does at least so much: the generator is the reason where the
    estimate is near its limit, too few trials where only the interval is that wide.
    """
    result = mask_unseen_cpu(with_soft_bounds(result, plan), plan.placement.unseen_roles)
    remarks = filter(None, (plan.remark, own_work_remark(plan.cell, trials)))
    result = replace(result, remark=" ".join(remarks) or None)
    if result.bound_hz is not None and (result.low_hz or 0) > BOUND_TOLERANCE * result.bound_hz:
        reason = (
            f"impossible: {result.low_hz:g} /s sustained, but theory allows {result.bound_hz:g} /s ({result.bound})"
        )
        return replace(
            result, status="failed", reason=reason, estimate_hz=None, low_hz=None, high_hz=None, confirmed_hz=None
        )
    if result.status == "measured" and result.generator_hz and (result.high_hz or 0) >= result.generator_hz:
        bound = replace(result, status="lower-bound", reason="budget", high_hz=None, precision_reached=None)
        near = (result.estimate_hz or 0.0) >= LIMITED_SHARE * result.generator_hz
        return replace(bound, reason="generator", limited_by="generator") if near else bound
    if result.bound_hz is not None and result.high_hz is not None and result.status in ("measured", "lower-bound"):
        return replace(result, high_hz=min(result.high_hz, max(result.bound_hz, result.estimate_hz or 0.0)))
    return result


def own_work_remark(cell: Cell, trials: Iterable[Measurement]) -> str | None:
    """Return a sentence that says what a program under test did not report of its messages.

    None where every body was verified and the CPU time that was spent is known, as with the common work function.
    """
    unverified = without_time = False
    for trial in trials:
        unverified |= trial.unverified > 0
        without_time |= cell.cpu_seconds > 0 and trial.cpu_used_s is None
    unknown = [name for name, is_unknown in (("bodies", unverified), ("CPU cost", without_time)) if is_unknown]
    if not unknown:
        return None
    what = " and ".join(unknown)
    return f"The program did not report what it did with the {what} of messages."


def with_soft_bounds(result: Result, plan: CellPlan) -> Result:
    """Add the soft bounds; set `limited_by` to a bound that is nearly reached, unless the generator limited it."""
    reached = reached_bound(result.estimate_hz or 0.0, plan.bounds)
    limited_by = result.limited_by if reached is None or result.limited_by == "generator" else reached.name
    return replace(result, limited_by=limited_by, soft_bounds=plan.soft_bounds)


def mask_unseen_cpu(result: Result, unseen_roles: Set[str]) -> Result:
    """Return the result with the CPU share of each role that nobody here sees set to None: it is unknown, not zero."""
    unseen = unseen_roles & result.cpu_share.keys()
    return replace(result, cpu_share=result.cpu_share | dict.fromkeys(unseen)) if unseen else result


def without_rate(cell: Cell, status: Status, reason: str) -> Result:
    """Return the result of a cell that was not searched."""
    return Result(
        cell.system, cell.framework, cell.source, cell.message_bytes, cell.cpu_seconds, status, reason, sizes=cell.sizes
    )


def check_sanity(measurement: Measurement, plan: CellPlan) -> None:
    """Raise ImpossibleMeasurementError where a trial of a cell breaks conservation or a hard bound."""
    bound_hz = cpu_bound(plan.cell, plan.placement.cores)
    link = None if plan.several_senders else plan.placement.link
    reason = failed_sanity_check(measurement, plan.cell, bound_hz=bound_hz, link=link)
    if reason is not None:
        raise ImpossibleMeasurementError(f"trial {measurement.planned.number}: {reason}")


def remaining_latency_trials(plan: CellPlan, result: Result, trials: list[Measurement]) -> list[PlannedTrial]:
    """Return the latency trials at the scenario's shares of the confirmed rate, without those that the journal has.

    One at a share of a rate that was confirmed on an earlier visit does not count.
    """
    latency = plan.scenario.latency
    if result.confirmed_hz is None or not latency.at:
        return []
    confirmed, window = result.confirmed_hz, float(latency.window)
    done = [trial.planned.rate for trial in trials if trial.planned.purpose == "latency"]
    rates = [confirmed * float(share) for share in latency.at]
    due = [rate for rate in rates if not any(math.isclose(rate, other, rel_tol=SAME_RATE) for other in done)]
    settle = max(1.0, 2 * plan.batch_interval)
    return [PlannedTrial(len(trials) + place, rate, settle, window, "latency") for place, rate in enumerate(due)]
