"""Typesetting of PDFs by Typst; all texts of a run are passed as data, never as source."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import typst

from reports.figures.figure import FONTS, Picture

TEMPLATES = Path(__file__).parent / "templates"
PAPER = "paper.typ"
"""What all templates import."""


def copy_template(name: str, folder: Path) -> Path:
    """Copy a template, and what it imports, into a folder; return its path there."""
    for each in (PAPER, name):
        (folder / each).write_bytes((TEMPLATES / each).read_bytes())
    return folder / name


def typeset(template: str, content: Mapping[str, object], pictures: Sequence[Picture], data: Path) -> bytes:
    """Return the PDF of a template.

    Args:
        template: Its file name.
        content: What it reads as report.json.
        pictures: What it includes, each as NAME.svg.
        data: The run's data folder, where the parts lie meanwhile: `bench clean` deletes them after a kill.
    """
    with contextlib.ExitStack() as undo:
        if not data.exists():  # the one that is there belongs to the run, which may go on
            data.mkdir()
            undo.callback(data.rmdir)
        root = Path(undo.enter_context(TemporaryDirectory(dir=data)))
        for picture in pictures:
            (root / f"{picture.name}.svg").write_text(picture.svg(), encoding="utf-8")
        (root / "report.json").write_text(json.dumps(content), encoding="utf-8")
        source = copy_template(template, root)
        return bytes(typst.compile(source, root=root, font_paths=[FONTS], ignore_system_fonts=True, format="pdf"))
