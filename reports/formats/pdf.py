"""The report of a run of kind map as a PDF."""

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import asdict

from bench.plugins.plugin import ReportPlugin
from reports.data.bottleneck import find_bottleneck
from reports.data.cost import CostTable, make_cost_table
from reports.data.labels import GLOSSARY, LIMITATIONS, list_remarks
from reports.data.metadata import describe_machine, describe_repetition, describe_subject
from reports.data.run_data import CellData, JudgedTrial, RunData, read_run_data
from reports.data.winners import summarize_run
from reports.figures.catalog import Group, make_map_groups, make_wide_groups
from reports.figures.figure import Picture
from reports.figures.timeline import make_timeline
from reports.figures.winner_map import make_winner_map
from reports.formats.csv_table import make_rows
from reports.formats.typesetting import typeset

MAX_BOTTLENECKS = 60
"""Sentences in the PDF; the HTML page has all."""


def write(run: Path) -> list[Path]:
    """Write report.pdf; return its path."""
    run_data = read_run_data(run)
    winners, examples = make_winner_map(run_data), choose_examples(run_data)
    groups = [*make_map_groups(run_data), *make_wide_groups(run_data)]
    pictures = [
        *([winners] if winners is not None else []),
        *(picture for group in groups for picture in group.pictures),
        *examples,
    ]
    bottlenecks = list_bottlenecks(run_data)
    content = {
        "title": run_data.title,
        "finding": summarize_run(run_data),
        "started": run_data.record.started,
        "winners": winners.name if winners is not None else None,
        "width": winners.width_mm() if winners is not None else 0,
        "groups": [_describe_group(group) for group in groups],
        "examples": [picture.name for picture in examples],
        "cost": _describe_cost(make_cost_table([run_data])),
        "remarks": list_remarks(run_data),
        "rows": [asdict(row) for row in make_rows(run_data)],
        "bottlenecks": bottlenecks[:MAX_BOTTLENECKS],
        "missing": [f"{cell_data.cell.system} {cell_data.point}" for cell_data in run_data.missing],
        "disagreement": run_data.disagreement,
        "subject": describe_subject(run_data),
        "machine": describe_machine(run_data.record),
        "repeat": describe_repetition(run_data.record),
        "limitations": list(LIMITATIONS.items()),
        "imported": run_data.imported,
        "omitted_bottlenecks": max(0, len(bottlenecks) - MAX_BOTTLENECKS),
        "glossary": list(GLOSSARY.items()),
    }
    path = run / "report.pdf"
    path.write_bytes(typeset("report.typ", content, pictures, run / "data"))
    return [path]


def _describe_group(group: Group) -> Mapping[str, object]:
    return {
        "title": group.title,
        "about": group.about,
        "pictures": [picture.name for picture in group.pictures],
        "width": max(picture.width_mm() for picture in group.pictures),
    }


def _describe_cost(table: CostTable | None) -> Mapping[str, object] | None:
    """Return the table with a list of texts for each row."""
    if table is None:
        return None
    rows = [[row.size, row.cost, row.plain, *row.cores] for row in table.rows]
    return {"summary": table.summary, "systems": table.systems, "rows": rows}


def list_bottlenecks(run_data: RunData) -> list[tuple[str, str, str]]:
    """Return cell, sentence and evidence of each bottleneck, those that are known first."""
    pairs = [(cell_data, find_bottleneck(run_data, cell_data)) for cell_data in run_data.cells]
    every = [(cell_data, bottleneck) for cell_data, bottleneck in pairs if bottleneck is not None]
    every.sort(key=lambda pair: pair[1].kind in ("not known", "time allowed"))
    return [
        (f"{cell_data.cell.system}, {cell_data.point}", bottleneck.sentence, bottleneck.evidence)
        for cell_data, bottleneck in every
    ]


def choose_examples(run_data: RunData) -> list[Picture]:
    """Return the timelines of a sustained and of an overloaded trial of one cell, the one with the most trials."""
    candidates: list[tuple[int, CellData, JudgedTrial, JudgedTrial]] = []
    for cell_data in run_data.cells:
        deciding = cell_data.deciding
        overloaded = [
            trial for trial in cell_data.trials if trial.verdict.word == "overloaded" and trial.measurement.series.at
        ]
        if (
            deciding is None
            or deciding.verdict.word != "sustained"
            or not deciding.measurement.series.at
            or not overloaded
        ):
            continue
        lowest = min(overloaded, key=lambda trial: trial.measurement.planned.rate)
        candidates.append((len(cell_data.trials), cell_data, deciding, lowest))
    if not candidates:
        return []
    _, cell_data, sustained, lowest = max(candidates, key=lambda candidate: candidate[0])
    return [make_timeline(cell_data, sustained), make_timeline(cell_data, lowest)]


plugin = ReportPlugin(write=write, default=True)
