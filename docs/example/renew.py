"""docs/example/, made from the folder of a real run: `python -m docs.example.renew results/RUN`."""

import shutil
import sys
from pathlib import Path

from bench.errors import HarnessError
from reports.data.metadata import machine_of, repeat_of, subject_of
from reports.data.run_data import RunData, read_run_data
from reports.data.winners import finding_of
from reports.figures.catalog import figures_of
from reports.formats import html_page

FOLDER = Path(__file__).parent
FILES = """\
A real run, as it was measured: [cells.json](cells.json), [run.json](run.json), and its [page](report.html) (open it in a browser: a
cell opens its trials). Made by `python -m docs.example.renew results/RUN`.
"""
KEPT = ("cells.json", "run.json")


def write(run: Path, folder: Path = FOLDER) -> list[Path]:
    """Write the run's cells, its page, its pictures, and a README that says what they are of."""
    run_data = read_run_data(run)
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / name for name in (*KEPT, "report.html", "README.md")]
    for name in KEPT:
        shutil.copyfile(run / name, folder / name)
    written[len(KEPT)].write_text(html_page.page_of(run_data), encoding="utf-8")
    written[-1].write_text(_readme(run_data), encoding="utf-8")
    wanted = [
        picture for picture in figures_of(run_data) if picture.name == "winners" or picture.name.startswith("curves")
    ]
    for old in folder.glob("*.svg"):
        old.unlink()
    for picture in wanted:
        written.append(folder / f"{picture.name}.svg")
        written[-1].write_text(picture.svg(), encoding="utf-8")
    return written


def _readme(run_data: RunData) -> str:
    """What was measured, on what, and what came of it."""
    curves = sum(picture.name.startswith("curves") for picture in figures_of(run_data))
    winners = "![Who is the best where](winners.svg)\n\n" if len(run_data.systems) > 1 else ""
    facts = "".join(f"| {label} | {text.replace('|', '/')} |\n" for label, text in _facts(run_data))
    drawn = "".join(f"![Frequency over message size](curves-{number}.svg)\n" for number in range(curves))
    return f"# Example: {run_data.title}\n\n{finding_of(run_data)}\n\n{winners}{drawn}\n{FILES}\n| | |\n| --- | --- |\n{facts}"


def _facts(run_data: RunData) -> list[tuple[str, str]]:
    return [*subject_of(run_data), *machine_of(run_data), *repeat_of(run_data)]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m docs.example.renew results/RUN")
    try:
        write(Path(sys.argv[1]))
    except HarnessError as problem:
        sys.exit(str(problem))
