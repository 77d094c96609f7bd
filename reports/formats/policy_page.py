"""The report of a run of kind elasticity as one HTML file: policies on one load, side by side."""

from pathlib import Path

from markupsafe import Markup
from msgspec import Struct

from bench.config.scenario import Scenario
from bench.plugins.plugin import ReportPlugin
from bench.units import seconds_text, size_text
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
from reports.figures.svg_embed import SvgEmbedder
from reports.formats.html_page import load_templates
from reports.formats.policy_plot import make_policy_picture


class SystemPart(Struct, frozen=True):
    """The part of the page about one system."""

    system: str
    summary: str
    workers: str
    figure: Markup | None
    rows: list[tuple[str, ...]]
    changes: list[tuple[str, list[tuple[str, str, str]]]]


def write(run: Path) -> list[Path]:
    """Write report.html; return its path. Raises UsageError for a run of another kind."""
    path = run / "report.html"
    path.write_text(render_page(*read_elastic_systems(run)), encoding="utf-8")
    return [path]


def render_page(scenario: Scenario, systems: tuple[ElasticSystem, ...]) -> str:
    """Return the whole page."""
    embedder = SvgEmbedder({})
    parts = [_make_part(elastic, embedder) for elastic in systems]
    return (
        load_templates()
        .get_template("policies.html")
        .render(
            title=scenario.title or scenario.name,
            load=describe_load(scenario),
            parts=parts,
            columns=COLUMNS,
            about_columns=ABOUT_COLUMNS,
            about_figure=ABOUT_FIGURE,
            styles=Markup(embedder.css()),  # noqa: S704  made of matplotlib's styles
        )
    )


def _make_part(elastic: ElasticSystem, embedder: SvgEmbedder) -> SystemPart:
    comparison = compare_policies(elastic)
    picture = make_policy_picture(comparison, f"Policies on {elastic.system}") if comparison is not None else None
    return SystemPart(
        elastic.system,
        summarize_policies(elastic),
        describe_workers(elastic),
        Markup(embedder.embed(picture)) if picture is not None else None,  # noqa: S704  escaped by matplotlib
        list(make_policy_rows(elastic)),
        [(policy.run.policy, list(list_changes(policy))) for policy in elastic.policies],
    )


def describe_load(scenario: Scenario) -> str:
    """Return a sentence about load and workers; it says where workers were throttled."""
    elasticity, grid = scenario.elasticity, scenario.grid
    if elasticity is None:
        return ""
    size, cost = size_text(int(grid.message_size[0])), seconds_text(float(grid.cpu_cost[0]))
    text = f"Messages of {size} that cost {cost} each, for {seconds_text(elasticity.seconds)}"
    text += f"; a decision every {seconds_text(float(elasticity.interval))}, {elasticity.most} workers at most."
    if elasticity.duty < 1:
        text += (
            f" Workers were throttled: they burnt {float(elasticity.duty):.0%} of the cost and slept for the rest, so"
            " that nothing here is about CPU."
        )
    return text


plugin = ReportPlugin(write=write, kind="elasticity", default=True)
