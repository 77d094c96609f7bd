"""Details of each cell for the HTML page: sentences, trials, latencies, resources, logs, and its command."""

from collections.abc import Mapping

from msgspec import Struct

from bench.model.measurement import REASONS
from bench.units import rate_text, seconds_text, size_text
from reports.data.bottleneck import find_bottleneck
from reports.data.derived import compute_bound_share, find_bound, get_cpu_seconds, rate_of
from reports.data.labels import format_claim, format_duration, format_latency, format_result_interval, status_of
from reports.data.log_excerpt import LogExcerpt, Logs
from reports.data.metadata import make_cell_command
from reports.data.resources import describe_resources
from reports.data.run_data import CellData, JudgedTrial, RunData
from reports.data.trial_timeline import describe_trial, make_trial_timeline
from reports.figures.posterior_curve import PosteriorCurve, compute_posterior_curve
from reports.figures.svg_timeline import SvgTimeline, make_svg_timeline

MAX_TRIALS_DRAWN = 4000
"""Trials of a run up to which the page has all timelines; with more, only those of deciding trials."""
MAX_CELLS_DRAWN = 1500
"""Cells of a run up to which the page has timelines, posterior curves and log excerpts."""


class TrialDetails(Struct, frozen=True, omit_defaults=True):
    """One trial as text."""

    number: int
    purpose: str
    rate: str
    verdict: str
    why: str = ""
    sent: str = ""
    processed: str = ""
    errors: str = ""
    """lost / duplicated / out of order / corrupted"""
    late: str = ""
    blocked: str = ""
    drained: str = ""
    p50: str = ""
    p99: str = ""
    cpu_used: str = ""
    """CPU time used on messages, as a percentage of the requested one"""
    cores: str = ""
    """cores in use by role"""
    seconds: str = ""
    note: str = ""
    title: str = ""
    timeline: SvgTimeline | None = None


class CellDetails(Struct, frozen=True, omit_defaults=True):
    """One cell as text."""

    system: str
    point: str
    claim: str
    status: str
    interval: str
    sentences: tuple[str, ...]
    trials: tuple[TrialDetails, ...] = ()
    posterior: PosteriorCurve | None = None
    latency: tuple[tuple[str, ...], ...] = ()
    """rate, share of the maximum rate, p50, p90, p99, maximum: of each sustained trial"""
    resources: tuple[tuple[str, ...], ...] = ()
    """resource usage of the deciding trial by role; see reports.data.resources"""
    logs: tuple[LogExcerpt, ...] = ()
    command: str = ""


def describe_cells(run_data: RunData) -> Mapping[str, CellDetails]:
    """Return the details of every cell by its anchor."""
    logs, total = Logs(run_data.folder), sum(len(cell_data.trials) for cell_data in run_data.cells)
    some = len(run_data.cells) <= MAX_CELLS_DRAWN
    return {
        cell_data.anchor: _describe_cell(run_data, cell_data, logs, every=some and total <= MAX_TRIALS_DRAWN, some=some)
        for cell_data in run_data.cells
    }


def _describe_cell(run_data: RunData, cell_data: CellData, logs: Logs, *, every: bool, some: bool) -> CellDetails:
    """Return the details of a cell, with timelines of `every` trial, or of `some`: the deciding one."""
    result = cell_data.result
    return CellDetails(
        cell_data.cell.system,
        cell_data.point,
        format_claim(result),
        status_of(cell_data),
        format_result_interval(result),
        tuple(_write_sentences(run_data, cell_data)),
        trials=tuple(
            _describe_trial(trial, drawn=every or (some and trial is cell_data.deciding)) for trial in cell_data.trials
        ),
        posterior=compute_posterior_curve(cell_data, run_data.record.scenario) if some else None,
        latency=_list_latencies(cell_data),
        resources=describe_resources(cell_data.deciding),
        logs=logs.find_excerpts(cell_data) if some else (),
        command=make_cell_command(run_data, cell_data),
    )


def _write_sentences(run_data: RunData, cell_data: CellData) -> list[str]:
    result, cell = cell_data.result, cell_data.cell
    if result is None:
        return ["The run has not finished this cell; its trials so far are below."] if cell_data.trials else []
    sentences = [f"Reason: {REASONS.get(result.reason, result.reason)}."] if result.reason else []
    if result.precision_reached is False:
        sentences.append("The interval is wider than the scenario asks.")
    if result.growing_hz is not None:
        sentences.append(f"If batches may grow beyond their interval: {rate_text(result.growing_hz)}.")
    if cell.sizes is not None:
        sentences.append(f"Message sizes differ: {cell.sizes.text}; {size_text(cell.message_bytes)} is their mean.")
    sentences += _write_limits(run_data, cell_data)
    bound, share = find_bound(run_data, cell_data), compute_bound_share(run_data, cell_data)
    if result.confirmed_hz is not None:
        sentences.append(f"Confirmed by a trial at {rate_text(result.confirmed_hz)}.")
    if bound is not None:
        least = "at least " if result.status == "lower-bound" else ""
        is_known = share is not None and result.status != "upper-bound"  # whose rate was too much
        reached = f"; {least}{share:.0%} of it was reached" if is_known else ""
        sentences.append(f"Theory ({bound.name}) allows {rate_text(bound.hz)}{reached}.")
    if result.remark is not None:
        sentences.append(result.remark)
    if result.generator_hz is not None:
        processes = f" with {cell_data.workers} processes" if cell_data.workers > 1 else ""
        sentences.append(f"Our load generator reached {rate_text(result.generator_hz)}{processes}.")
    return sentences


def _write_limits(run_data: RunData, cell_data: CellData) -> list[str]:
    """Return what the rules and a trace say of the limit of a cell."""
    sentences, bottleneck = list[str](), find_bottleneck(run_data, cell_data)
    if bottleneck is not None:
        evidence = f" Evidence: {bottleneck.evidence}." if bottleneck.evidence else ""
        sentences.append(f"Bottleneck: {bottleneck.kind}. {bottleneck.sentence}{evidence}")
    explained = run_data.explained.get(cell_data.cell)
    if explained is not None and (bottleneck is None or explained.explanation.sentence not in bottleneck.evidence):
        rate = rate_text(explained.trial.measurement.planned.rate)
        sentences.append(f"Trace of the trial at {rate}: {explained.explanation.sentence}.")
    return sentences


def _list_latencies(cell_data: CellData) -> tuple[tuple[str, ...], ...]:
    """Return a row of quantiles for each sustained rate, lowest first."""
    top = rate_of(cell_data.result)
    trials = {
        trial.measurement.planned.rate: trial
        for trial in cell_data.trials
        if trial.verdict.word == "sustained" and trial.measurement.from_due.p50 is not None
    }
    return tuple(
        (
            rate_text(rate),
            f"{rate / top:.0%}" if top else "",
            *(format_latency(trial, getattr(trial.measurement.from_due, q)) for q in ("p50", "p90", "p99", "max")),
        )
        for rate, trial in sorted(trials.items())
    )


def _describe_trial(trial: JudgedTrial, *, drawn: bool) -> TrialDetails:
    measurement, verdict = trial.measurement, trial.verdict
    ended = "" if measurement.ended in ("complete", "hopeless") else f" [{measurement.ended}]"
    errors = (measurement.lost, measurement.duplicated, measurement.out_of_order, measurement.corrupted)
    requested, used = measurement.cpu_requested_s, measurement.cpu_used_s
    return TrialDetails(
        measurement.planned.number,
        measurement.planned.purpose,
        rate_text(measurement.planned.rate),
        verdict.word,
        verdict.why + ended,
        _format_count(measurement.sent),
        _format_count(measurement.processed),
        errors=" / ".join(str(count) for count in errors),
        late=format_duration(measurement.late),
        blocked=format_duration(measurement.blocked),
        drained="yes" if measurement.drained else "no",
        p50=format_latency(trial, measurement.from_due.p50),
        p99=format_latency(trial, measurement.from_due.p99),
        cpu_used=f"{100 * used / requested:.1f} %" if requested and used is not None else "",
        cores=_format_cores(trial),
        seconds=seconds_text(measurement.seconds),
        note=measurement.note,
        title=describe_trial(trial),
        timeline=make_svg_timeline(make_trial_timeline(trial)) if drawn else None,
    )


def _format_cores(trial: JudgedTrial) -> str:
    cpu, span = trial.measurement.cpu, get_cpu_seconds(trial.measurement)
    return ", ".join(
        f"{role} {seconds / span:.2f}" for role, seconds in cpu.items() if role not in ("seconds", "available")
    )


def _format_count(count: int) -> str:
    """Return a number in full, in groups of three digits."""
    return f"{count:,}".replace(",", "\u202f")
