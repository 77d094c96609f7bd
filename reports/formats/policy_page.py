"""The report of a run of kind elasticity as one HTML file: policies on one load, side by side."""

from pathlib import Path

from markupsafe import Markup

from bench.config.scenario import Scenario
from bench.plugins.plugin import ReportPlugin
from reports.data.policy_runs import (
    ABOUT_COLUMNS,
    ABOUT_FIGURE,
    COLUMNS,
    ElasticSystem,
    describe_load,
    describe_system,
    read_elastic_systems,
)
from reports.figures.svg_embed import SvgEmbedder
from reports.formats.html_page import load_templates
from reports.formats.policy_plot import draw_system


def write(run: Path) -> list[Path]:
    """Write report.html; return its path. Raises UsageError for a run of another kind."""
    path = run / "report.html"
    path.write_text(render_page(*read_elastic_systems(run)), encoding="utf-8")
    return [path]


def render_page(scenario: Scenario, systems: tuple[ElasticSystem, ...]) -> str:
    """Return the whole page."""
    embedder = SvgEmbedder({})
    pictures = [draw_system(elastic, f"Policies on {elastic.system}") for elastic in systems]
    figures = [None if each is None else Markup(embedder.embed(each)) for each in pictures]  # noqa: S704  escaped by matplotlib
    return (
        load_templates()
        .get_template("policies.html")
        .render(
            title=scenario.title or scenario.name,
            load=describe_load(scenario),
            parts=list(zip(map(describe_system, systems), figures, strict=True)),
            columns=COLUMNS,
            about_columns=ABOUT_COLUMNS,
            about_figure=ABOUT_FIGURE,
            styles=Markup(embedder.css()),  # noqa: S704  made of matplotlib's styles
        )
    )


plugin = ReportPlugin(write=write, kind="elasticity", default=True)
