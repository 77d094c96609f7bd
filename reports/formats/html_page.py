"""The report as one self-contained HTML file: maps and a table whose cells open their trials, and the method."""

from pathlib import Path

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from bench.plugins.plugin import ReportPlugin
from bench.units import seconds_text, size_text
from reports.data.cost import make_cost_table
from reports.data.labels import GLOSSARY, LIMITATIONS, MISSING, format_claim, list_remarks, status_of
from reports.data.metadata import describe_machine, describe_repetition, describe_subject
from reports.data.run_data import RunData, read_run_data
from reports.data.winners import summarize_run
from reports.figures.catalog import Group, make_map_groups, make_wide_groups
from reports.figures.figure import Picture
from reports.figures.svg_embed import SvgEmbedder
from reports.figures.svg_timeline import BACKLOG_HEIGHT, COUNTS_HEIGHT, WIDTH
from reports.figures.winner_map import make_winner_map
from reports.formats.cell_details import describe_cells
from reports.formats.csv_table import COLUMNS, make_rows

STATUSES = ("measured", "lower-bound", "upper-bound", "unstable", "failed", "unsupported", "not-measured", MISSING)


class EmbeddedGroup(Struct, frozen=True):
    """Figures of one kind as elements, each with its system, if it shows only one."""

    name: str
    title: str
    about: str
    figures: tuple[tuple[str, Markup], ...]


def write(run: Path) -> list[Path]:
    """Write report.html; return its path."""
    path = run / "report.html"
    path.write_text(render_page(read_run_data(run)), encoding="utf-8")
    return [path]


def render_page(run_data: RunData) -> str:
    """Return the whole page."""
    embedder = SvgEmbedder(make_link_labels(run_data))
    winners = make_winner_map(run_data)
    map_groups = [
        EmbeddedGroup(group.name, group.title, group.about, _embed_by_system(embedder, group.pictures, run_data))
        for group in make_map_groups(run_data)
    ]
    return (
        load_templates()
        .get_template("report.html")
        .render(
            title=run_data.title,
            finding=summarize_run(run_data),
            winners=_embed(embedder, winners) if winners is not None else None,
            cost=make_cost_table([run_data]),
            remarks=list_remarks(run_data),
            map_groups=map_groups,
            wide_groups=[_embed_wide(embedder, group) for group in make_wide_groups(run_data)],
            columns=COLUMNS,
            rows=make_rows(run_data),
            statuses=STATUSES,
            systems=run_data.systems,
            sizes=[(size, size_text(size)) for size in run_data.sizes],
            costs=[(cost, seconds_text(cost)) for cost in run_data.costs],
            subject=describe_subject(run_data),
            machine=describe_machine(run_data.record),
            repeat=describe_repetition(run_data.record),
            missing=run_data.missing,
            disagreement=run_data.disagreement,
            limitations=LIMITATIONS,
            glossary=GLOSSARY,
            box=(WIDTH, COUNTS_HEIGHT, BACKLOG_HEIGHT),
            data=encode_for_script(describe_cells(run_data)),
            styles=Markup(embedder.css()),  # noqa: S704  made of matplotlib's styles
        )
    )


def load_templates() -> Environment:
    """Return the environment of the templates; it escapes all texts of a run."""
    return Environment(
        loader=PackageLoader("reports.formats"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def encode_for_script(data: object) -> Markup:
    """Return data as JSON for a script element: nothing in it can end the element."""
    text = msgspec.json.encode(data).decode()
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))  # noqa: S704  escaped on the line above


def make_link_labels(run_data: RunData) -> dict[str, str]:
    """Return the label of each cell's link, for screen readers and as a tooltip."""
    return {
        f"#{cell_data.anchor}": f"{cell_data.cell.system}, {cell_data.point}: "
        f"{format_claim(cell_data.result)} ({status_of(cell_data)})"
        for cell_data in run_data.cells
    }


def _embed_by_system(
    embedder: SvgEmbedder, pictures: tuple[Picture, ...], run_data: RunData
) -> tuple[tuple[str, Markup], ...]:
    return tuple(
        (system, _embed(embedder, picture)) for system, picture in zip(run_data.systems, pictures, strict=True)
    )


def _embed_wide(embedder: SvgEmbedder, group: Group) -> EmbeddedGroup:
    return EmbeddedGroup(
        group.name, group.title, group.about, tuple(("", _embed(embedder, picture)) for picture in group.pictures)
    )


def _embed(embedder: SvgEmbedder, picture: Picture) -> Markup:
    return Markup(embedder.embed(picture))  # noqa: S704  escaped by matplotlib


plugin = ReportPlugin(write=write, default=True)
