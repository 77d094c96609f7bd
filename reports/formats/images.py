"""Every figure as a file: figures/*.svg and figures/*.png."""

from pathlib import Path

from reports.data.run_data import Evidence, read_evidence
from reports.figures.catalog import figures_of
from reports.figures.figure import Picture
from reports.figures.timeline import timeline_of


def write(run: Path) -> list[Path]:
    """Write the maps, and for each cell the timeline of the trial that its answer rests on."""
    evidence = read_evidence(run)
    folder = run / "figures"
    folder.mkdir(exist_ok=True)
    written: list[Path] = []
    for picture in (*figures_of(evidence), *_timelines_of(evidence)):
        files = {folder / f"{picture.name}.svg": picture.svg().encode(), folder / f"{picture.name}.png": picture.png()}
        for path, content in files.items():
            path.write_bytes(content)
        written += files
    return written


def _timelines_of(evidence: Evidence) -> list[Picture]:
    return [timeline_of(known, known.deciding) for known in evidence.cells if known.deciding is not None]
