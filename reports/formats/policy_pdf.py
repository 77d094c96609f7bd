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
    ElasticSystem,
    compare_policies,
    describe_workers,
    list_changes,
    make_policy_rows,
    read_elastic_systems,
    summarize_policies,
)
from reports.figures.figure import Picture
from reports.formats.policy_page import describe_load
from reports.formats.policy_plot import make_policy_picture
from reports.formats.typesetting import typeset

MAX_CHANGES = 40
"""Of one policy in the PDF; the HTML page has all."""


def write(run: Path) -> list[Path]:
    """Write report.pdf; return its path. Raises UsageError for a run of another kind."""
    (scenario, systems), record = read_elastic_systems(run), read_run(run)
    drawn = [
        (elastic, picture)
        for number, elastic in enumerate(systems)
        if (picture := _make_picture(number, elastic)) is not None
    ]
    content = {
        "title": scenario.title or scenario.name,
        "findings": [summarize_policies(elastic) for elastic in systems],
        "disagreement": summary_text(check_run(run)),
        "load": describe_load(scenario),
        "columns": COLUMNS,
        "about_columns": ABOUT_COLUMNS,
        "about_figure": ABOUT_FIGURE,
        "systems": [_describe_system(elastic, picture) for elastic, picture in drawn],
        "subject": describe_elasticity(record),
        "machine": describe_machine(record),
        "repeat": describe_repetition(record),
    }
    path = run / "report.pdf"
    path.write_bytes(typeset("policies.typ", content, [picture for _, picture in drawn], run / "data"))
    return [path]


def _make_picture(number: int, elastic: ElasticSystem) -> Picture | None:
    comparison = compare_policies(elastic)
    if comparison is None:
        return None
    return make_policy_picture(comparison, f"Policies on {elastic.system}", f"policies-{number}")


def _describe_system(elastic: ElasticSystem, picture: Picture) -> Mapping[str, object]:
    """Return the part of the report about one system."""
    return {
        "system": elastic.system,
        "workers": describe_workers(elastic),
        "picture": picture.name,
        "rows": list(make_policy_rows(elastic)),
        "changes": [
            {"policy": policy.run.policy, "rows": changes[:MAX_CHANGES], "omitted": max(0, len(changes) - MAX_CHANGES)}
            for policy in elastic.policies
            if (changes := list_changes(policy))
        ],
    }


plugin = ReportPlugin(write=write, kind="elasticity", default=True)
