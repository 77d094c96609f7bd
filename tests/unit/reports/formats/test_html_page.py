"""The page of a run loads nothing, shows every cell, and claims no more than the run folder contains."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from sample_runs import (
    QUICK,
    make_large_scenario,
    make_measurement,
    make_result,
    make_run,
    make_single_scenario,
    make_trials,
    open_run_folder,
    status_of,
)

from bench.analysis.verdict import Rules, judge
from bench.config.scenario import Grid, Scenario
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Buckets
from bench.storage.run_folder import read_run
from bench.units import Size
from reports.data.run_data import CellData, JudgedTrial, RunData, read_run_data
from reports.formats import html_page, images, pdf


@pytest.fixture(scope="module")
def html(run: Path) -> str:
    html_page.write(run)
    return (run / "report.html").read_text(encoding="utf-8")


class Elements(HTMLParser):
    """The attributes of every element of an HTML page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def all(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(attribute)) is not None]


def test_the_page_loads_nothing(html: str) -> None:
    """Neither an element nor a style refers to another place."""
    elements = Elements(html)
    loads = [*elements.all("src"), *elements.all("href"), *elements.all("xlink:href"), *elements.all("srcset")]
    assert [load for load in loads if not load.startswith(("#", "data:"))] == []
    assert re.findall(r"@import|url\((?!#)", html) == []


def test_every_cell_of_a_map_leads_to_its_line(run: Path, html: str) -> None:
    """The winner map, the maps of its system and the table link to it, and each link has its target."""
    elements = Elements(html)
    targets = [href[1:] for href in elements.all("href") if href.startswith("#cell-")]
    assert set(targets) == {cell_data.anchor for cell_data in read_run_data(run).cells}
    assert all(targets.count(target) >= 3 for target in set(targets))  # two maps and the table
    assert set(targets) <= set(elements.all("id"))


def test_an_id_occurs_once_in_a_page(html: str) -> None:
    """The figures do not take ids from each other."""
    ids = Elements(html).all("id")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "word",
    ["measured", "lower-bound", "upper-bound", "unstable", "failed", "unsupported", "not-measured", "no result yet"],
)
def test_a_status_is_shown_and_explained(html: str, word: str) -> None:
    """It is in the table and in the glossary."""
    assert f'">{word}</span></td>' in html
    assert f"<dt>{word}</dt>" in html


def test_a_failed_cell_has_no_rate(html: str) -> None:
    """It is not shown as zero."""
    assert "spark/files, 100 B, 10 ms: failed (failed)" in html
    assert not re.search(r">0 /s<", html)


def test_hostile_text_is_escaped_in_the_page(hostile_run: Path) -> None:
    """No title, reason or note becomes an element, and none is a template."""
    (path,) = html_page.write(hostile_run)
    text = path.read_text(encoding="utf-8")
    assert [tag for tag, _ in Elements(text).elements if tag == "script"] == ["script", "script"]  # our own
    assert text.count("&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;") >= 4
    assert text.count("\\u003c/title>\\u003cscript>alert(1)") >= 2  # in the data
    assert text.count("{{ 7 * 7 }}") >= 6


def test_latency_trials_are_drawn_for_their_cell(tmp_path: Path) -> None:
    """The page has a panel for each rate; the PDF and the image files have the figure, too."""
    cell = QUICK.cells()[0]
    buckets = Buckets([3] * 3, ["due", "sent", "processing"], [3000, 2900, 2000], [500] * 3)
    with open_run_folder(tmp_path / "run", make_single_scenario(cell)) as store:
        for number, rate in enumerate((50.0, 80.0, 95.0)):
            store.add(cell, make_measurement(number, rate, 100.0, "latency", latencies=buckets))
        store.save_result(cell, make_result(cell))
    text = html_page.render_page(read_run_data(tmp_path / "run"))
    assert '<section id="latency">' in text
    assert text.count("share of messages") == 3
    assert pdf.write(tmp_path / "run")
    assert [path.stem for path in images.write(tmp_path / "run") if "latency" in path.stem]


def test_the_page_lists_its_limitations(html: str) -> None:
    """There are six: shared machine, short trials, noise, intervals, lower bounds, unknown bottlenecks."""
    _, _, rest = html.partition('<section id="limitations">')
    limitations, _, _ = rest.partition("</section>")
    assert limitations.count("<li>") == 6


def test_the_page_of_an_unfinished_run_lists_missing_cells(html: str) -> None:
    """The cells without a result are named at the top."""
    assert "This run is not finished." in html
    assert "1 of 24 cells has no result yet" in html


def test_a_system_alone_has_no_winner_map(tmp_path: Path) -> None:
    """There is nothing to compare."""
    scenario = Scenario(name="alone", systems=("python/kafka",), grid=Grid((Size(1000),)))
    run = make_run(tmp_path / "run", scenario)
    (path,) = html_page.write(run)
    assert 'id="winners"' not in path.read_text(encoding="utf-8")


def test_a_folder_without_measurements_is_refused(tmp_path: Path) -> None:
    """The message says how to continue."""
    run = make_run(tmp_path / "run", unfinished=QUICK.cells())
    with pytest.raises(UsageError, match="no trial and no result yet"):
        html_page.write(run)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    """The error names the missing file."""
    with pytest.raises(UsageError, match=r"run\.json"):
        html_page.write(tmp_path)


def test_a_page_of_192_cells_is_small(tmp_path: Path) -> None:
    """Six systems, eight sizes, four costs, eight trials each: less than 5 MB."""
    scenario = make_large_scenario(6, 8, 4)
    with open_run_folder(tmp_path / "run", scenario) as store:
        record = read_run(store.folder)
    cells = tuple(make_cell_data(cell, trials=8) for cell in scenario.cells())
    page = html_page.render_page(RunData(store.folder, record, cells))
    assert len(cells) == 192
    assert len(page.encode()) < 5_000_000


def make_cell_data(cell: Cell, trials: int) -> CellData:
    """Return the data of a finished cell, as if they had been read from a run folder."""
    rules = Rules(precision=float(QUICK.search.precision))
    judged = tuple(JudgedTrial(trial, judge(trial, rules)) for trial in make_trials(cell, trials))
    return CellData(cell, make_result(cell, status_of(cell)), judged)
