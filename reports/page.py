"""The report as one HTML file that needs nothing else: maps whose cells lead to their trials, and how it was measured."""

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from bench.units import rate_text
from reports.evidence import Evidence, Judged, Known, read_evidence
from reports.heatmap import map_of
from reports.provenance import machine_of, repeat_of, subject_of
from reports.sketch import LOW, TALL, WIDTH, Sketch, sketch_of
from reports.table import lines_of, time_text
from reports.timeline import title_of, trace_of
from reports.winner import finding_of
from reports.winnermap import winners_of
from reports.wording import GLOSSARY, claim_of, interval_text, status_of


class Attempt(Struct, frozen=True):
    """One trial, as people read it."""

    number: int
    purpose: str
    rate: str
    word: str
    why: str
    sent: str
    processed: str
    wrong: str
    """lost / duplicated / disordered / corrupted"""
    late: str
    blocked: str
    drained: str
    p50: str
    p99: str
    burnt: str
    """of the CPU time that was asked for"""
    cpu: str
    """cores by role"""
    seconds: str
    note: str
    title: str
    sketch: Sketch | None


class Section(Struct, frozen=True):
    """One cell, as people read it."""

    anchor: str
    system: str
    point: str
    claim: str
    status: str
    interval: str
    sentences: tuple[str, ...]
    attempts: tuple[Attempt, ...]


def write(run: Path) -> list[Path]:
    """Write report.html."""
    evidence = read_evidence(run)
    templates = Environment(
        loader=PackageLoader("reports"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page = templates.get_template("report.html").render(
        title=evidence.title,
        finding=finding_of(evidence),
        winners=_winners(evidence),
        maps=[Markup(map_of(evidence, system).inline(_labels(evidence))) for system in evidence.systems],  # noqa: S704 escaped by matplotlib
        lines=lines_of(evidence),
        subject=subject_of(evidence),
        machine=machine_of(evidence),
        repeat=repeat_of(evidence),
        missing=evidence.missing,
        groups=[(system, [_section_of(known) for known in evidence.of_system(system)]) for system in evidence.systems],
        glossary=GLOSSARY,
        box=(WIDTH, TALL, LOW),
    )
    path = run / "report.html"
    path.write_text(page, encoding="utf-8")
    return [path]


def _winners(evidence: Evidence) -> Markup | None:
    if len(evidence.systems) < 2:
        return None
    return Markup(winners_of(evidence).inline(_labels(evidence)))  # noqa: S704 escaped by matplotlib


def _labels(evidence: Evidence) -> dict[str, str]:
    """What a screen reader says of a map's cell, and a mouse shows."""
    return {
        f"#{known.anchor}": f"{known.cell.system}, {known.point}: {claim_of(known.result)} ({status_of(known)})"
        for known in evidence.cells
    }


def _section_of(known: Known) -> Section:
    result = known.result
    return Section(
        known.anchor,
        known.cell.system,
        known.point,
        claim_of(result),
        status_of(known),
        interval_text(result.low_hz, result.high_hz) if result is not None else "",
        _sentences(known),
        tuple(_attempt_of(judged) for judged in known.trials),
    )


def _sentences(known: Known) -> tuple[str, ...]:
    """What else is known of a cell."""
    result = known.result
    if result is None:
        return ("The run has not finished this cell; what it has tried so far is below.",) if known.trials else ()
    said = [f"Reason: {result.reason}." if result.reason else ""]
    if result.confirmed_hz is not None:
        said.append(f"Confirmed by a second trial at {rate_text(result.confirmed_hz)}.")
    if result.bound_hz is not None:
        said.append(f"Theory ({result.bound or 'bound'}) allows {rate_text(result.bound_hz)}.")
    if result.limited_by is not None:
        said.append(f"Limited by: {result.limited_by}.")
    if result.generator_hz is not None:
        said.append(f"Our generator reached {rate_text(result.generator_hz)}.")
    return tuple(sentence for sentence in said if sentence)


def _grouped(count: int) -> str:
    """A number of messages in full, in groups of three digits."""
    return f"{count:,}".replace(",", "\u202f")


def _attempt_of(judged: Judged) -> Attempt:
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
        wrong=f"{seen.lost} / {seen.duplicated} / {seen.disordered} / {seen.corrupted}",
        late=time_text(seen.late),
        blocked=time_text(seen.blocked),
        drained="yes" if seen.drained else "no",
        p50=time_text(seen.from_due.p50),
        p99=time_text(seen.from_due.p99),
        burnt=f"{100 * seen.burnt / seen.asked:.1f} %" if seen.asked else "",
        cpu=", ".join(f"{role} {seconds / seen.planned.window:.2f}" for role, seconds in seen.cpu.items()),
        seconds=time_text(seen.seconds),
        note=seen.note,
        title=title_of(judged),
        sketch=sketch_of(trace_of(judged)),
    )
