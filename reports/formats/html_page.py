"""The report as one HTML file that needs nothing else: maps whose cells open what was seen in them, and how it was measured."""

from pathlib import Path

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from bench.plugins.plugin import ReportPlugin
from bench.units import seconds_text, size_text
from reports.data.cell_details import dossiers_of
from reports.data.labels import DOUBTS, GLOSSARY, claim_of, status_of
from reports.data.metadata import machine_of, repeat_of, subject_of
from reports.data.run_data import RunData, read_run_data
from reports.data.winners import finding_of
from reports.figures.catalog import Group, groups_of, wide_groups_of, winners_of_run
from reports.figures.figure import Picture
from reports.figures.svg_embed import Inliner
from reports.figures.svg_timeline import LOW, TALL, WIDTH
from reports.formats.csv_table import COLUMNS, lines_of

STATUSES = ("measured", "lower-bound", "upper-bound", "unstable", "failed", "unsupported", "not measured")


class Drawn(Struct, frozen=True):
    """Figures of one kind, as elements; of each the system that it is of, where it is of one."""

    name: str
    title: str
    about: str
    figures: tuple[tuple[str, Markup], ...]


def write(run: Path) -> list[Path]:
    """Write report.html."""
    path = run / "report.html"
    path.write_text(page_of(read_run_data(run)), encoding="utf-8")
    return [path]


def page_of(run_data: RunData) -> str:
    """The whole page."""
    inliner = Inliner(labels_of(run_data))
    winners = winners_of_run(run_data)
    layers = [
        Drawn(group.name, group.title, group.about, _of_systems(inliner, group.pictures, run_data))
        for group in groups_of(run_data)
    ]
    return (
        templates()
        .get_template("report.html")
        .render(
            title=run_data.title,
            finding=finding_of(run_data),
            winners=_element(inliner, winners) if winners is not None else None,
            layers=layers,
            wide=[_wide(inliner, group) for group in wide_groups_of(run_data)],
            columns=COLUMNS,
            lines=lines_of(run_data),
            statuses=STATUSES,
            systems=run_data.systems,
            sizes=[(size, size_text(size)) for size in run_data.sizes],
            costs=[(cost, seconds_text(cost)) for cost in run_data.costs],
            subject=subject_of(run_data),
            machine=machine_of(run_data),
            repeat=repeat_of(run_data),
            missing=run_data.missing,
            doubts=DOUBTS,
            glossary=GLOSSARY,
            box=(WIDTH, TALL, LOW),
            data=embedded(dossiers_of(run_data)),
            styles=Markup(inliner.css()),  # noqa: S704 made of matplotlib's styles
        )
    )


def templates() -> Environment:
    """The templates; whatever a run says is escaped in them."""
    return Environment(
        loader=PackageLoader("reports.formats"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def embedded(data: object) -> Markup:
    """Data as JSON that can stand inside a script element: nothing in it ends the element."""
    text = msgspec.json.encode(data).decode()
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))  # noqa: S704 that is what it is for


def labels_of(run_data: RunData) -> dict[str, str]:
    """What a screen reader says of a map's cell, and a mouse shows."""
    return {
        f"#{known.anchor}": f"{known.cell.system}, {known.point}: {claim_of(known.result)} ({status_of(known)})"
        for known in run_data.cells
    }


def _of_systems(inliner: Inliner, pictures: tuple[Picture, ...], run_data: RunData) -> tuple[tuple[str, Markup], ...]:
    return tuple(
        (system, _element(inliner, picture)) for system, picture in zip(run_data.systems, pictures, strict=True)
    )


def _wide(inliner: Inliner, group: Group) -> Drawn:
    return Drawn(
        group.name, group.title, group.about, tuple(("", _element(inliner, picture)) for picture in group.pictures)
    )


def _element(inliner: Inliner, picture: Picture) -> Markup:
    return Markup(inliner.element(picture))  # noqa: S704 escaped by matplotlib


plugin = ReportPlugin(write=write, default=True)
