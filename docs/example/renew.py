"""Script that renews docs/example/ from a run of a scenario: `python -m docs.example.renew results/A [results/B]`.

The page and the figures show the first run; the README compares a second one with it, cell by cell.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.errors import HarnessError
from reports.data.metadata import describe_machine, describe_repetition, describe_subject
from reports.data.run_data import RunData, read_run_data
from reports.data.winners import summarize_run
from reports.figures.catalog import make_figures
from reports.formats import comparison, html_page

FOLDER = Path(__file__).parent
FILES = """\
A real run: [cells.json](cells.json), [run.json](run.json), and its [page](report.html) (open it in a browser and click
a cell to see its trials). Made by `python -m docs.example.renew results/A [results/B]`.
"""
COPIED = ("cells.json", "run.json")
OUT_OPTION = r' --out [^\s"<]+'
"""The part of a recorded command that names a folder of the machine; the example is published without it."""


def write(run: Path, second: Path | None = None, folder: Path = FOLDER) -> list[Path]:
    """Write the run's cells, its page, its figures, and a README that compares a second run; return the paths."""
    run_data, again = read_run_data(run), read_run_data(second) if second else None
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / name for name in (*COPIED, "report.html", "README.md")]
    texts = [(run / name).read_text(encoding="utf-8") for name in COPIED]
    texts += [html_page.render_page(run_data), _make_readme(run_data, again)]
    for path, text in zip(written, texts, strict=True):
        path.write_text(re.sub(OUT_OPTION, "", text), encoding="utf-8")
    chosen = [
        picture for picture in make_figures(run_data) if picture.name == "winners" or picture.name.startswith("curves")
    ]
    for old in folder.glob("*.svg"):
        old.unlink()
    for picture in chosen:
        written.append(folder / f"{picture.name}.svg")
        written[-1].write_text(picture.svg(), encoding="utf-8")
    return written


def _make_readme(run_data: RunData, again: RunData | None) -> str:
    """Return the text of the README: the summary, the figures, a second run, the subject and the machine."""
    curves = sum(picture.name.startswith("curves") for picture in make_figures(run_data))
    winners = "![The best system at each point](winners.svg)\n\n" if len(run_data.systems) > 1 else ""
    facts = "".join(f"| {label} | {text.replace('|', '/')} |\n" for label, text in _list_facts(run_data))
    images = "".join(f"![Throughput over message size](curves-{number}.svg)\n" for number in range(curves))
    head = f"# Example: {run_data.title}\n\n{summarize_run(run_data)}\n\n"
    comparison_of_both = f"{_compare([run_data, again])}\n" if again else ""
    tables = f"{comparison_of_both}## The run\n\n| | |\n| --- | --- |\n{facts}"
    return f"{head}{winners}{images}\n{FILES}\n{tables}"


def _compare(runs: Sequence[RunData]) -> str:
    """Return a section that compares the second run with the first one, as `bench compare` does."""
    rows = comparison.compare_cells(runs)
    lines = []
    for row in rows:
        second = row.sides[1]
        rates = " | ".join(f"{side.claim} {side.interval}".strip() for side in row.sides)
        decision = ", ".join(filter(None, [second.word, second.why]))
        lines.append(f"| {row.system}, {row.size}, {row.cost} | {rates} | {second.ratio.lstrip('x')} | {decision} |\n")
    said = " ".join(
        [*comparison.summarize_comparison(rows, ["the first run", "the second"]), *comparison.summarize_speeds(runs)]
    )
    head = "| cell | first run | second run | ratio | decision |\n| --- | --- | --- | --- | --- |\n"
    return f"## A second run of the same scenario\n\n{said}\n\n{head}{''.join(lines)}"


def _list_facts(run_data: RunData) -> list[tuple[str, str]]:
    return [*describe_subject(run_data), *describe_machine(run_data.record), *describe_repetition(run_data.record)]


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python -m docs.example.renew results/A [results/B]")
    try:
        write(*map(Path, sys.argv[1:]))
    except HarnessError as problem:
        sys.exit(str(problem))
