"""Every figure as a file: figures/*.svg and figures/*.png."""

from pathlib import Path

from bench.plugins.plugin import ReportPlugin
from reports.data.run_data import RunData, read_run_data
from reports.figures.catalog import make_figures
from reports.figures.figure import Picture
from reports.figures.timeline import make_timeline


def write(run: Path) -> list[Path]:
    """Write all figures, and the timeline of each cell's deciding trial; return the paths."""
    run_data = read_run_data(run)
    folder = run / "figures"
    folder.mkdir(exist_ok=True)
    written: list[Path] = []
    for picture in (*make_figures(run_data), *_make_timelines(run_data)):
        files = {folder / f"{picture.name}.svg": picture.svg().encode(), folder / f"{picture.name}.png": picture.png()}
        for path, content in files.items():
            path.write_bytes(content)
        written += files
    return written


def _make_timelines(run_data: RunData) -> list[Picture]:
    return [
        make_timeline(cell_data, cell_data.deciding) for cell_data in run_data.cells if cell_data.deciding is not None
    ]


plugin = ReportPlugin(write=write)
