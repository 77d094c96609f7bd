"""The report as a PDF, typeset from the same figures; what the run says is handed over as data, never as source."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import typst
from msgspec.structs import asdict

from reports.evidence import Evidence, Judged, Known, read_evidence
from reports.figure import FONTS, Picture
from reports.pictures import maps_of
from reports.provenance import machine_of, repeat_of, subject_of
from reports.table import lines_of
from reports.timeline import timeline_of
from reports.winner import finding_of
from reports.wording import GLOSSARY

TEMPLATE = Path(__file__).parent / "templates" / "report.typ"


def write(run: Path) -> list[Path]:
    """Write report.pdf."""
    evidence = read_evidence(run)
    pictures, examples = maps_of(evidence), examples_of(evidence)
    said = {
        "title": evidence.title,
        "finding": finding_of(evidence),
        "started": evidence.record.started,
        "winners": pictures[0].name if len(evidence.systems) > 1 else None,
        "width": pictures[0].width_mm(),
        "maps": [picture.name for picture in pictures if picture.name != "winners"],
        "examples": [picture.name for picture in examples],
        "lines": [asdict(line) for line in lines_of(evidence)],
        "missing": [f"{known.cell.system} {known.point}" for known in evidence.missing],
        "subject": subject_of(evidence),
        "machine": machine_of(evidence),
        "repeat": repeat_of(evidence),
        "glossary": list(GLOSSARY.items()),
    }
    path = run / "report.pdf"
    path.write_bytes(_typeset(said, [*pictures, *examples]))
    return [path]


def examples_of(evidence: Evidence) -> list[Picture]:
    """A sustained and an overloaded trial of one cell, to show how a rate is judged; of the cell with the most trials."""
    found: list[tuple[int, Known, Judged, Judged]] = []
    for known in evidence.cells:
        kept = known.deciding
        over = [one for one in known.trials if one.verdict.word == "overloaded" and one.seen.series.at]
        if kept is not None and kept.verdict.word == "sustained" and kept.seen.series.at and over:
            found.append((len(known.trials), known, kept, min(over, key=lambda one: one.seen.planned.rate)))
    if not found:
        return []
    _, known, kept, beyond = max(found, key=lambda one: one[0])
    return [timeline_of(known, kept), timeline_of(known, beyond)]


def _typeset(said: Mapping[str, object], pictures: list[Picture]) -> bytes:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for picture in pictures:
            (root / f"{picture.name}.svg").write_text(picture.svg(), encoding="utf-8")
        (root / "report.json").write_text(json.dumps(said), encoding="utf-8")
        source = root / "report.typ"
        source.write_bytes(TEMPLATE.read_bytes())
        return bytes(typst.compile(source, root=root, font_paths=[FONTS], ignore_system_fonts=True, format="pdf"))
