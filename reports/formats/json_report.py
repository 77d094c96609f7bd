"""The report for a program: report.json, everything that the page says of each cell, with the names of cells.json."""

import json
from pathlib import Path

from bench.plugins.plugin import ReportPlugin
from bench.units import exact_text
from reports.data.bottleneck import limit_of
from reports.data.metadata import machine_of, repeat_of, subject_of
from reports.data.run_data import CellData, RunData, read_run_data
from reports.data.winners import finding_of
from reports.formats.csv_table import goals_of, roles_of, row_of

FORMAT = 1


def write(run: Path) -> list[Path]:
    """Write report.json."""
    run_data = read_run_data(run)
    record = {
        "format": FORMAT,
        "title": run_data.title,
        "finding": finding_of(run_data),
        "subject": dict(subject_of(run_data)),
        "machine": dict(machine_of(run_data)),
        "repeat": dict(repeat_of(run_data)),
        "cells": [_cell(run_data, known) for known in run_data.cells],
    }
    path = run / "report.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False, default=exact_text) + "\n", encoding="utf-8")
    return [path]


def _cell(run_data: RunData, known: CellData) -> dict[str, object]:
    """A row of the table, what limits the cell in a sentence, and each trial in a line."""
    limit = limit_of(run_data, known)
    trials = [
        {"number": seen.planned.number, "rate_hz": seen.planned.rate, "purpose": seen.planned.purpose, "verdict": verdict.word,
         "why": verdict.why, "window_s": seen.planned.window, "sent": seen.sent, "processed": seen.processed, "lost": seen.lost}
        for seen, verdict in ((one.seen, one.verdict) for one in known.trials)
    ]  # fmt: skip
    return {
        **row_of(known, roles_of(run_data), goals_of(run_data)),
        "limit": limit and limit.sentence,
        "trials_made": trials,
    }


plugin = ReportPlugin(write=write)
