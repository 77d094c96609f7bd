"""All that a page shows of one cell when it is asked for, as plain data: what is known, its trials, its logs, its command."""

from collections.abc import Mapping

from msgspec import Struct

from bench.units import rate_text, seconds_text, size_text
from reports.data.bottleneck import limit_of
from reports.data.derived import bound_of, efficiency_of
from reports.data.labels import claim_of, interval_text, status_of
from reports.data.log_excerpt import Logs, Tail
from reports.data.metadata import repeat_cell
from reports.data.posterior_curve import Belief, belief_of
from reports.data.resources import costs_of
from reports.data.run_data import CellData, JudgedTrial, RunData
from reports.figures.svg_timeline import Sketch, sketch_of
from reports.figures.timeline import title_of, trace_of
from reports.formats.csv_table import known_text, time_text

MAX_SKETCHED = 4000
"""Trials of a run whose timelines are all in its page; with more, only those that the answers rest on."""
MAX_CELLS_SKETCHED = 1500
"""Cells of a run whose page has timelines at all."""


class Attempt(Struct, frozen=True, omit_defaults=True):
    """One trial, as people read it."""

    number: int
    purpose: str
    rate: str
    word: str
    why: str = ""
    sent: str = ""
    processed: str = ""
    wrong: str = ""
    """lost / duplicated / out_of_order / corrupted"""
    late: str = ""
    blocked: str = ""
    drained: str = ""
    p50: str = ""
    p99: str = ""
    cpu_used_s: str = ""
    """of the CPU time that was asked for"""
    cpu: str = ""
    """cores by role"""
    seconds: str = ""
    note: str = ""
    title: str = ""
    sketch: Sketch | None = None


class Dossier(Struct, frozen=True, omit_defaults=True):
    """One cell, as people read it."""

    system: str
    point: str
    claim: str
    status: str
    interval: str
    sentences: tuple[str, ...]
    attempts: tuple[Attempt, ...] = ()
    belief: Belief | None = None
    latency: tuple[tuple[str, ...], ...] = ()
    """rate, share of the top rate, p50, p90, p99, most: of each sustained trial"""
    costs: tuple[tuple[str, ...], ...] = ()
    """what the trial behind the answer took, by role; see reports.data.resources"""
    logs: tuple[Tail, ...] = ()
    command: str = ""


def dossiers_of(run_data: RunData) -> Mapping[str, Dossier]:
    """The dossier of every cell, by its anchor."""
    logs, total = Logs(run_data.folder), sum(len(known.trials) for known in run_data.cells)
    some = len(run_data.cells) <= MAX_CELLS_SKETCHED
    return {
        known.anchor: _dossier_of(run_data, known, logs, every=some and total <= MAX_SKETCHED, some=some)
        for known in run_data.cells
    }


def _dossier_of(run_data: RunData, known: CellData, logs: Logs, *, every: bool, some: bool) -> Dossier:
    result = known.result
    return Dossier(
        known.cell.system,
        known.point,
        claim_of(result),
        status_of(known),
        interval_text(result.low_hz, result.high_hz) if result is not None else "",
        tuple(_sentences(run_data, known)),
        attempts=tuple(
            _attempt_of(judged, drawn=every or (some and judged is known.deciding)) for judged in known.trials
        ),
        belief=belief_of(known, run_data.record.scenario.search) if some else None,
        latency=_latency_of(known),
        costs=costs_of(known.deciding),
        logs=logs.of(known) if some else (),
        command=repeat_cell(run_data, known),
    )


def _sentences(run_data: RunData, known: CellData) -> list[str]:
    """What else is known of a cell."""
    result = known.result
    if result is None:
        return ["The run has not finished this cell; what it has tried so far is below."] if known.trials else []
    said = [f"Reason: {result.reason}."] if result.reason else []
    if known.cell.sizes is not None:
        said.append(
            f"Sizes of messages differ: {known.cell.sizes.text}; {size_text(known.cell.message_bytes)} is their mean."
        )
    limit, bound, share = limit_of(run_data, known), bound_of(run_data, known), efficiency_of(run_data, known)
    if limit is not None:
        said.append(
            f"Limited by {limit.kind}: {limit.sentence}{f' Evidence: {limit.evidence}.' if limit.evidence else ''}"
        )
    if result.confirmed_hz is not None:
        said.append(f"Confirmed by a trial at {rate_text(result.confirmed_hz)}.")
    if bound is not None:
        reached = f"; {share:.0%} of it was reached" if share is not None else ""
        said.append(f"Theory ({bound.kind}) allows {rate_text(bound.hertz)}{reached}.")
    if result.generator_hz is not None:
        said.append(f"Our generator reached {rate_text(result.generator_hz)}.")
    return said


def _latency_of(known: CellData) -> tuple[tuple[str, ...], ...]:
    """How latency rises with the load: one row for each sustained rate, slow ones first."""
    top = known.result.estimate_hz or known.result.low_hz if known.result is not None else None
    sustained = [one for one in known.trials if one.verdict.word == "sustained" and one.seen.from_due.p50 is not None]
    rows = sorted({one.seen.planned.rate: one for one in sustained}.items())
    return tuple(
        (
            rate_text(rate),
            f"{rate / top:.0%}" if top else "",
            *(known_text(one, getattr(one.seen.from_due, q)) for q in ("p50", "p90", "p99", "max")),
        )
        for rate, one in rows
    )


def _attempt_of(judged: JudgedTrial, *, drawn: bool) -> Attempt:
    seen, verdict = judged.seen, judged.verdict
    ended = "" if seen.ended in ("complete", "hopeless") else f" [{seen.ended}]"
    return Attempt(
        seen.planned.number,
        seen.planned.purpose,
        rate_text(seen.planned.rate),
        verdict.word,
        verdict.why + ended,
        _grouped(seen.sent),
        _grouped(seen.processed),
        wrong=f"{seen.lost} / {seen.duplicated} / {seen.out_of_order} / {seen.corrupted}",
        late=time_text(seen.late),
        blocked=time_text(seen.blocked),
        drained="yes" if seen.drained else "no",
        p50=known_text(judged, seen.from_due.p50),
        p99=known_text(judged, seen.from_due.p99),
        cpu_used_s=f"{100 * seen.cpu_used_s / seen.cpu_requested_s:.1f} %" if seen.cpu_requested_s else "",
        cpu=_cores_text(judged),
        seconds=seconds_text(seen.seconds),
        note=seen.note,
        title=title_of(judged),
        sketch=sketch_of(trace_of(judged)) if drawn else None,
    )


def _cores_text(judged: JudgedTrial) -> str:
    cpu = judged.seen.cpu
    span = cpu.get("seconds") or judged.seen.planned.window
    return ", ".join(
        f"{role} {seconds / span:.2f}" for role, seconds in cpu.items() if role not in ("seconds", "available")
    )


def _grouped(count: int) -> str:
    """A number of messages in full, in groups of three digits."""
    return f"{count:,}".replace(",", "\u202f")
