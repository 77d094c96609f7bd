"""The report as a PDF, typeset from the same figures; what the run says is handed over as data, never as source."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import typst
from msgspec.structs import asdict

from bench.plugins.plugin import ReportPlugin
from reports.data.bottleneck import limit_of
from reports.data.labels import DOUBTS, GLOSSARY
from reports.data.metadata import machine_of, repeat_of, subject_of
from reports.data.run_data import CellData, JudgedTrial, RunData, read_run_data
from reports.data.winners import finding_of
from reports.figures.catalog import Group, groups_of, wide_groups_of, winners_of_run
from reports.figures.figure import FONTS, Picture
from reports.figures.timeline import timeline_of
from reports.formats.csv_table import lines_of

MAX_LIMITS = 60
"""Sentences on paper; the page has all."""
TEMPLATE = Path(__file__).parent / "templates" / "report.typ"


def write(run: Path) -> list[Path]:
    """Write report.pdf."""
    run_data = read_run_data(run)
    winners, examples = winners_of_run(run_data), examples_of(run_data)
    groups = [*groups_of(run_data), *wide_groups_of(run_data)]
    pictures = [
        *([winners] if winners is not None else []),
        *(one for group in groups for one in group.pictures),
        *examples,
    ]
    said = {
        "title": run_data.title,
        "finding": finding_of(run_data),
        "started": run_data.record.started,
        "winners": winners.name if winners is not None else None,
        "width": winners.width_mm() if winners is not None else 0,
        "groups": [_said(group) for group in groups],
        "examples": [picture.name for picture in examples],
        "lines": [asdict(line) for line in lines_of(run_data)],
        "limits": limits_of(run_data),
        "missing": [f"{known.cell.system} {known.point}" for known in run_data.missing],
        "subject": subject_of(run_data),
        "machine": machine_of(run_data),
        "repeat": repeat_of(run_data),
        "doubts": list(DOUBTS.items()),
        "imported": run_data.imported,
        "untold": max(0, sum(limit_of(run_data, known) is not None for known in run_data.cells) - MAX_LIMITS),
        "glossary": list(GLOSSARY.items()),
    }
    path = run / "report.pdf"
    path.write_bytes(_typeset(said, pictures))
    return [path]


def _said(group: Group) -> Mapping[str, object]:
    return {
        "title": group.title,
        "about": group.about,
        "pictures": [picture.name for picture in group.pictures],
        "width": max(picture.width_mm() for picture in group.pictures),
    }


def limits_of(run_data: RunData) -> list[tuple[str, str, str]]:
    """Cell, sentence and evidence for each cell whose limit is told; at most MOST_LIMITS, those whose limit is known first."""
    found = [(known, limit) for known in run_data.cells if (limit := limit_of(run_data, known)) is not None]
    told = sorted(found, key=lambda one: one[1].kind in ("not known", "time"))[:MAX_LIMITS]
    return [(f"{known.cell.system}, {known.point}", limit.sentence, limit.evidence) for known, limit in told]


def examples_of(run_data: RunData) -> list[Picture]:
    """A sustained and an overloaded trial of one cell, to show how a rate is judged; of the cell with the most trials."""
    found: list[tuple[int, CellData, JudgedTrial, JudgedTrial]] = []
    for known in run_data.cells:
        cached_resource = known.deciding
        over = [one for one in known.trials if one.verdict.word == "overloaded" and one.seen.series.at]
        if (
            cached_resource is not None
            and cached_resource.verdict.word == "sustained"
            and cached_resource.seen.series.at
            and over
        ):
            found.append((len(known.trials), known, cached_resource, min(over, key=lambda one: one.seen.planned.rate)))
    if not found:
        return []
    _, known, cached_resource, beyond = max(found, key=lambda one: one[0])
    return [timeline_of(known, cached_resource), timeline_of(known, beyond)]


def _typeset(said: Mapping[str, object], pictures: list[Picture]) -> bytes:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for picture in pictures:
            (root / f"{picture.name}.svg").write_text(picture.svg(), encoding="utf-8")
        (root / "report.json").write_text(json.dumps(said), encoding="utf-8")
        source = root / "report.typ"
        source.write_bytes(TEMPLATE.read_bytes())
        return bytes(typst.compile(source, root=root, font_paths=[FONTS], ignore_system_fonts=True, format="pdf"))


plugin = ReportPlugin(write=write, default=True)
