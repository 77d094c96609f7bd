"""The report for programs: report.json, with the content of the page for each cell and the names of cells.json."""

import json
from pathlib import Path

from bench.plugins.plugin import ReportPlugin
from bench.units import exact_text
from reports.data.bottleneck import find_bottleneck
from reports.data.metadata import describe_machine, describe_repetition, describe_subject
from reports.data.run_data import CellData, RunData, read_run_data
from reports.data.winners import summarize_run
from reports.formats.csv_table import list_objectives, list_roles, make_record

FORMAT = 1


def write(run: Path) -> list[Path]:
    """Write report.json; return its path."""
    run_data = read_run_data(run)
    record = {
        "format": FORMAT,
        "title": run_data.title,
        "finding": summarize_run(run_data),
        "subject": dict(describe_subject(run_data)),
        "machine": dict(describe_machine(run_data.record)),
        "repeat": dict(describe_repetition(run_data.record)),
        "cells": [_make_cell(run_data, cell_data) for cell_data in run_data.cells],
    }
    path = run / "report.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False, default=exact_text) + "\n", encoding="utf-8")
    return [path]


def _make_cell(run_data: RunData, cell_data: CellData) -> dict[str, object]:
    """Return the fields of a cell, its bottleneck as a sentence, and its trials."""
    bottleneck = find_bottleneck(run_data, cell_data)
    trials = [
        {
            "number": measurement.planned.number,
            "rate_hz": measurement.planned.rate,
            "purpose": measurement.planned.purpose,
            "verdict": verdict.word,
            "why": verdict.why,
            "window_s": measurement.planned.window,
            "sent": measurement.sent,
            "processed": measurement.processed,
            "lost": measurement.lost,
        }
        for measurement, verdict in ((trial.measurement, trial.verdict) for trial in cell_data.trials)
    ]
    return {
        **make_record(cell_data, list_roles(run_data), list_objectives(run_data), imported=run_data.imported),
        "limit": bottleneck and bottleneck.sentence,
        "trials_made": trials,
    }


plugin = ReportPlugin(write=write)
