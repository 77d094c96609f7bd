"""The fields of a result besides its rates: totals over all trials, and latency, losses and CPU of one trial."""

from collections.abc import Sequence

from msgspec.structs import replace

from bench.analysis.verdict import GENERATOR_LATE, Verdict
from bench.model.measurement import Measurement, Result
from bench.search.problem import SearchProblem, Step

ROLES = ("framework", "source", "load", "harness", "busy", "steal")


def result_without_rate(problem: SearchProblem, steps: Sequence[Step], generator_hz: float | None) -> Result:
    """Return a result of status "failed" with the totals over all trials.

    Args:
        problem: The search problem of the cell.
        steps: All trials.
        generator_hz: The generator's limit in messages/s, if it is known.
    """
    cell = problem.cell
    return Result(
        cell.system, cell.framework, cell.source, cell.message_bytes, cell.cpu_seconds, "failed",
        bound_hz=problem.bound_hz,
        bound=problem.bound if problem.bound_hz is not None else None,
        trials=len(steps),
        seconds=sum(step.measurement.seconds for step in steps),
        sent=sum(step.measurement.sent for step in steps),
        processed=sum(step.measurement.processed for step in steps),
        generator_hz=generator_hz,
        sizes=cell.sizes,
    )  # fmt: skip


def without_valid_trial(result: Result, last: Verdict) -> Result:
    """Return the result of a cell that was given up after invalid trials.

    It is not measured if other work or stalls of the generator were the cause: another visit may find none.
    """
    if last.cause in ("other work", "generator") and last.why != GENERATOR_LATE:
        return replace(result, status="not-measured", reason=last.why)
    return replace(result, reason=f"no valid trial: {last.why or 'the counters contradict themselves'}")


def with_trial(result: Result, best: Step, limit: str | None) -> Result:
    """Return the result with latency, losses and CPU shares of the trial `best`, and the limiting resource."""
    measurement = best.measurement
    cpu = measurement.cpu
    return replace(
        result,
        limited_by=limit,
        lost=measurement.lost,
        duplicated=measurement.duplicated,
        corrupted=measurement.corrupted,
        latency_s=measurement.from_due,
        cpu_share={role: cpu[role] / cpu["seconds"] for role in ROLES if cpu.get("seconds")},
    )


def last_note(steps: Sequence[Step]) -> str:
    """Return the note of the last trial that has one."""
    return next((step.measurement.note for step in reversed(steps) if step.measurement.note), "no reason given")


def sent_rate(measurement: Measurement) -> float:
    """Return the messages/s that a late generator sent: the planned rate less the share that it was behind."""
    planned = measurement.planned
    due = measurement.offered or planned.rate * (planned.settle + planned.window)
    return planned.rate * max(0.0, 1 - measurement.late * planned.rate / due)
