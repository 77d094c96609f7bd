"""What a result says besides its rates: how much was tried, and what the trial behind the rate says of latency, losses and CPU."""

from collections.abc import Sequence

from msgspec.structs import replace

from bench.model.measurement import Measurement, Result
from bench.search.problem import SearchProblem, Step

ROLES = ("framework", "source", "load", "harness", "busy", "steal")


def bare_result(question: SearchProblem, steps: Sequence[Step], generator_hz: float | None) -> Result:
    """The result of a cell of which only the trials are known yet: "failed", without a rate."""
    cell = question.cell
    return Result(
        cell.system, cell.framework, cell.source, cell.message_bytes, cell.cpu_seconds, "failed",
        bound_hz=question.bound_hz,
        bound=question.bound if question.bound_hz is not None else None,
        trials=len(steps),
        seconds=sum(step.seen.seconds for step in steps),
        sent=sum(step.seen.sent for step in steps),
        processed=sum(step.seen.processed for step in steps),
        generator_hz=generator_hz,
        sizes=cell.sizes,
    )  # fmt: skip


def with_account(result: Result, best: Step, limit: str | None) -> Result:
    """The result with what the trial behind its rate says of latency, losses and CPU."""
    seen = best.seen
    return replace(
        result,
        limited_by=limit,
        lost=seen.lost,
        duplicated=seen.duplicated,
        corrupted=seen.corrupted,
        latency_s=seen.from_due,
        cpu_share={role: seen.cpu[role] / seen.cpu["seconds"] for role in ROLES if seen.cpu.get("seconds")},
    )


def note_of(steps: Sequence[Step]) -> str:
    """What the last trial that gave trouble said of it."""
    return next((step.seen.note for step in reversed(steps) if step.seen.note), "no reason given")


def reached(seen: Measurement) -> float:
    """Messages/s that the generator sent of those that were due, in a trial in which it was late."""
    due = seen.planned.rate * (seen.planned.settle + seen.planned.window) if not seen.offered else seen.offered
    return seen.planned.rate * max(0.0, 1 - seen.late * seen.planned.rate / due)
