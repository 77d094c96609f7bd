"""The report of a run of kind elasticity as a PDF."""

from collections.abc import Mapping
from pathlib import Path

from bench.plugins.plugin import ReportPlugin
from bench.runner.verification import check_run, summary_text
from bench.storage.run_folder import read_run
from reports.data.metadata import describe_elasticity, describe_machine, describe_repetition
from reports.data.policy_runs import (
    ABOUT_COLUMNS,
    ABOUT_FIGURE,
    COLUMNS,
    SystemTexts,
    describe_load,
    describe_system,
    read_elastic_systems,
)
from reports.figures.figure import Picture
from reports.formats.policy_plot import draw_system
from reports.formats.typesetting import typeset

MAX_CHANGES = 40
"""Of one policy in the PDF; the HTML page has all."""


def write(run: Path) -> list[Path]:
    """Write report.pdf; return its path. Raises UsageError for a run of another kind."""
    (scenario, systems), record = read_elastic_systems(run), read_run(run)
    texts = [describe_system(elastic) for elastic in systems]
    pictures = [
        draw_system(elastic, f"Policies on {elastic.system}", f"policies-{number}")
        for number, elastic in enumerate(systems)
    ]
    drawn = [(one, picture) for one, picture in zip(texts, pictures, strict=True) if picture is not None]
    content = {
        "title": scenario.title or scenario.name,
        "findings": [one.summary for one in texts],
        "disagreement": summary_text(check_run(run)),
        "load": describe_load(scenario),
        "columns": COLUMNS,
        "about_columns": ABOUT_COLUMNS,
        "about_figure": ABOUT_FIGURE,
        "systems": [_list_content(one, picture) for one, picture in drawn],
        "subject": describe_elasticity(record),
        "machine": describe_machine(record),
        "repeat": describe_repetition(record),
    }
    path = run / "report.pdf"
    path.write_bytes(typeset("policies.typ", content, [picture for _, picture in drawn], run / "data"))
    return [path]


def _list_content(texts: SystemTexts, picture: Picture) -> Mapping[str, object]:
    """Return the part of the report about one system."""
    return {
        "system": texts.system,
        "workers": texts.workers,
        "picture": picture.name,
        "rows": texts.rows,
        "changes": [
            {"policy": policy, "rows": rows[:MAX_CHANGES], "omitted": max(0, len(rows) - MAX_CHANGES)}
            for policy, rows in texts.changes
        ],
    }


plugin = ReportPlugin(write=write, kind="elasticity", default=True)
