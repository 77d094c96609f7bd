"""Every figure as a file: figures/*.svg and figures/*.png."""

from pathlib import Path

from bench.plugins.plugin import ReportPlugin
from reports.data.run_data import RunData, read_run_data
from reports.figures.catalog import figures_of
from reports.figures.figure import Picture
from reports.figures.timeline import timeline_of


def write(run: Path) -> list[Path]:
    """Write the maps, and for each cell the timeline of the trial that its answer rests on."""
    run_data = read_run_data(run)
    folder = run / "figures"
    folder.mkdir(exist_ok=True)
    written: list[Path] = []
    for picture in (*figures_of(run_data), *_timelines_of(run_data)):
        files = {folder / f"{picture.name}.svg": picture.svg().encode(), folder / f"{picture.name}.png": picture.png()}
        for path, content in files.items():
            path.write_bytes(content)
        written += files
    return written


def _timelines_of(run_data: RunData) -> list[Picture]:
    return [timeline_of(known, known.deciding) for known in run_data.cells if known.deciding is not None]


plugin = ReportPlugin(write=write)
