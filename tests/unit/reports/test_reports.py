"""Reports are made from a run folder alone, and claim no more than it contains."""

import csv
import json
import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

from sample_runs import QUICK, make_large_scenario, make_measurement, make_result, make_run, open_run_folder

from bench.analysis.verdict import Verdict
from bench.config.scenario import Grid, Scenario
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Buckets, Result, Series
from bench.storage.run_folder import RunFolder
from bench.units import Size
from reports.data.labels import format_error
from reports.data.run_data import CellData, JudgedTrial, read_run_data
from reports.data.trial_timeline import make_trial_timeline
from reports.data.winners import describe_decision, format_ratio, rank_cells, summarize_run
from reports.formats import csv_table, html_page, images, json_report, pdf


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with every status and one unfinished cell, with all its reports."""
    folder = make_run(tmp_path_factory.mktemp("results") / "quick")
    for report in (html_page, pdf, images, json_report, csv_table):
        report.write(folder)
    return folder


@pytest.fixture(scope="module")
def html(run: Path) -> str:
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


@pytest.mark.parametrize(
    ("report", "name"),
    [(html_page, "report.html"), (pdf, "report.pdf"), (json_report, "report.json"), (csv_table, "cells.csv")],
    ids=["html", "pdf", "json", "csv"],
)
def test_a_report_names_the_file_that_it_wrote(run: Path, report: Any, name: str) -> None:
    """The file exists and is not empty."""
    assert report.write(run) == [run / name]
    assert (run / name).stat().st_size > 0


def test_pictures_are_the_maps_and_a_timeline_for_each_cell(run: Path) -> None:
    """Each picture is written as SVG and as PNG."""
    names = {path.stem for path in (run / "figures").glob("*.svg")}
    kinds = ("map", "efficiency", "throughput", "cpu", "limits")
    systems = ("spark-tcp", "spark-files", "spark-kafka", "python-kafka")
    assert {"winners", "curves-0", "curves-1", *(f"{kind}-{system}" for kind in kinds for system in systems)} <= names
    assert (
        len([name for name in names if name.startswith("timeline-")]) == 22
    )  # 24 less the unsupported and the unfinished
    assert {path.stem for path in (run / "figures").glob("*.png")} == names


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


@pytest.mark.parametrize(
    ("system", "claim"), [("python-kafka", "≥ 184 k/s"), ("spark-tcp", "≤ 89.7 /s")], ids=["least", "most"]
)
def test_a_bound_looks_like_one(run: Path, system: str, claim: str) -> None:
    """Its rate carries the sign, its cell a hatch."""
    svg = (run / "figures" / f"map-{system}.svg").read_text(encoding="utf-8")
    assert claim in svg
    assert "<pattern" in svg


def test_a_failed_cell_has_no_rate(html: str) -> None:
    """It is not shown as zero."""
    assert "spark/files, 100 B, 10 ms: failed (failed)" in html
    assert not re.search(r">0 /s<", html)


EVIL = '</title><script>alert(1)</script> #panic("x") $\\frac{1}{$ {{ 7 * 7 }}'


def make_hostile_run(folder: Path) -> Path:
    """Return a run in which every text tries to inject code."""
    scenario = Scenario(name="evil", title=EVIL, systems=("a/b", "c/$x_"), grid=Grid((Size(100),)))
    with open_run_folder(folder, scenario, command=EVIL, versions={EVIL: EVIL}, revision=[EVIL]) as store:
        for cell in scenario.cells():
            store.add(cell, make_measurement(0, 50.0, 40.0, note=EVIL))
            store.save_result(cell, make_result(cell, "failed", reason=EVIL))
    return folder


def test_hostile_text_is_escaped_in_the_page(tmp_path: Path) -> None:
    """No title, reason or note becomes an element, and none is a template."""
    (path,) = html_page.write(make_hostile_run(tmp_path / "run"))
    text = path.read_text(encoding="utf-8")
    assert [tag for tag, _ in Elements(text).elements if tag == "script"] == ["script", "script"]  # our own
    assert text.count("&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;") >= 4
    assert text.count("\\u003c/title>\\u003cscript>alert(1)") >= 2  # in the data
    assert text.count("{{ 7 * 7 }}") >= 6


def test_hostile_text_is_only_text_in_the_pdf(tmp_path: Path) -> None:
    """Typst neither panics nor evaluates; the document's title is the text as it is."""
    (path,) = pdf.write(make_hostile_run(tmp_path / "run"))
    assert b"#panic" in path.read_bytes()


def test_nothing_of_the_pdf_lies_outside_the_run_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`bench clean` deletes what a kill leaves of it, and nothing is left otherwise."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    folder = make_run(tmp_path / "run", trials=2)
    (folder / "data").rmdir()
    pdf.write(folder)
    assert not (folder / "data").exists()


def test_the_pdf_has_pages_and_its_fonts_within(run: Path) -> None:
    """It can be read on a machine without our fonts."""
    content = (run / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 3
    assert re.findall(rb"/FontFile[23]", content)


@pytest.mark.parametrize(
    ("report", "pattern"),
    [
        (html_page, "report.html"), (pdf, "report.pdf"), (images, "figures/*.svg"),
        (json_report, "report.json"), (csv_table, "cells.csv"),
    ],
    ids=["html", "pdf", "svg", "json", "csv"],
)  # fmt: skip
def test_the_same_run_gives_the_same_bytes(run: Path, report: Any, pattern: str) -> None:
    """Nothing in a report comes from the clock or from chance."""
    before = {path: path.read_bytes() for path in run.glob(pattern)}
    report.write(run)
    assert before
    assert {path: path.read_bytes() for path in run.glob(pattern)} == before


def test_the_csv_has_the_names_of_the_results(run: Path) -> None:
    """Each field of cells.json but the searches' own has a column; nested fields have a dot."""
    with (run / "cells.csv").open(encoding="utf-8", newline="") as file:
        columns = csv.DictReader(file).fieldnames or []
    nested = {
        "latency_s": [f"latency_s.{q}" for q in ("p50", "p90", "p99", "max")],
        "cpu_share": ["cpu_share.framework", "cpu_share.source"],
        "objectives": [],
        "noise": [],
        "warm_ups": [],
        "soft_bounds": ["soft_bounds.network", "soft_bounds.disk"],
    }
    wanted = [name for field in Result.__struct_fields__ for name in nested.get(field, [field])]
    assert [name for name in columns if name != "bound_share"] == wanted


def test_the_csv_leaves_empty_what_does_not_exist(run: Path) -> None:
    """The line of a cell that was not measured has no numbers."""
    with (run / "cells.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    last = lines[-1]
    assert (len(lines), last["status"], last["estimate_hz"], last["lost"]) == (24, "no result yet", "", "")


def test_the_json_agrees_with_the_page(run: Path) -> None:
    """It has a format, a summary, and every cell with its bottleneck as a sentence and its trials."""
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    assert (report["format"], len(report["cells"])) == (1, 24)
    assert report["finding"] in (run / "report.html").read_text(encoding="utf-8")
    measured = next(cell for cell in report["cells"] if cell["status"] == "measured")
    assert measured["limit"]
    assert [trial["number"] for trial in measured["trials_made"]] == list(range(measured["trials"]))
    assert report["cells"][-1]["estimate_hz"] is None


def test_latency_trials_are_drawn_for_their_cell(tmp_path: Path) -> None:
    """The page has a panel for each rate; the PDF and the image files have the figure, too."""
    cell = QUICK.cells()[0]
    buckets = Buckets([3] * 3, ["due", "sent", "processing"], [3000, 2900, 2000], [500] * 3)
    with open_run_folder(tmp_path / "run", QUICK) as store:
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


@pytest.mark.parametrize(
    "report", [html_page, pdf, images, json_report, csv_table], ids=["html", "pdf", "png", "json", "csv"]
)
def test_trials_without_any_result_make_a_report(tmp_path: Path, report: Any) -> None:
    """A run that was killed in its first cell has a report."""
    run = make_run(tmp_path / "run", unfinished=QUICK.cells())
    store = RunFolder(run)
    store.add(QUICK.cells()[0], make_measurement(0, 50.0, 40.0))
    assert all(path.exists() for path in report.write(run))


@pytest.mark.parametrize(
    "report", [html_page, pdf, images, json_report, csv_table], ids=["html", "pdf", "png", "json", "csv"]
)
def test_a_trial_without_counters_makes_a_report(tmp_path: Path, report: Any) -> None:
    """A load that died at once leaves an empty series."""
    run = make_run(tmp_path / "run", unfinished=QUICK.cells())
    RunFolder(run).add(QUICK.cells()[0], make_measurement(0, 50.0, 40.0, ended="load died", offered=0, series=Series()))
    assert all(path.exists() for path in report.write(run))


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
    run = make_run(tmp_path / "run", make_large_scenario(6, 8, 4), trials=8)
    (path,) = html_page.write(run)
    assert path.stat().st_size < 5_000_000


CELLS = [Cell(framework, "kafka", 100, 0.0) for framework in ("a", "b", "c")]


def find_leaders(*results: Result) -> tuple[str, ...]:
    """Return the leaders among the results of the first cells."""
    (ranking,) = rank_cells([CellData(cell, result, ()) for cell, result in zip(CELLS, results, strict=False)])
    return ranking.leaders


def rated(cell: Cell, low: float | None, high: float | None, status: str = "measured") -> Result:
    """Return a result with that interval."""
    estimate = (low * high) ** 0.5 if low and high else low
    rates: dict[str, Any] = {"low_hz": low, "high_hz": high, "estimate_hz": estimate}
    return make_result(cell, status, **rates)


def test_a_system_above_all_intervals_wins() -> None:
    """Its sustained rate is above the interval of every other system."""
    assert find_leaders(rated(CELLS[0], 100, 110), rated(CELLS[1], 75, 85)) == ("a/kafka",)


def test_overlapping_intervals_have_no_winner() -> None:
    """The higher estimate comes first, but does not win."""
    assert find_leaders(rated(CELLS[0], 90, 105), rated(CELLS[1], 100, 110)) == ("b/kafka", "a/kafka")


def test_a_lower_bound_is_never_certainly_beaten() -> None:
    """Its true rate may be higher."""
    assert find_leaders(rated(CELLS[0], 100, 110), rated(CELLS[1], 50, None, "lower-bound")) == ("a/kafka", "b/kafka")


def test_a_lower_bound_above_all_others_wins() -> None:
    """At least that rate is enough."""
    assert find_leaders(rated(CELLS[0], 100, 110), rated(CELLS[1], 150, None, "lower-bound")) == ("b/kafka",)


def test_an_upper_bound_that_reaches_above_the_best_is_not_beaten() -> None:
    """It may still be better."""
    assert find_leaders(rated(CELLS[0], 100, 110), rated(CELLS[1], None, 200, "upper-bound")) == ("a/kafka", "b/kafka")


def test_failed_and_unsupported_systems_are_not_in_the_ranking() -> None:
    """The one that runs is the best."""
    assert find_leaders(
        rated(CELLS[0], 1, 2), make_result(CELLS[1], "failed"), make_result(CELLS[2], "unsupported")
    ) == ("a/kafka",)


def test_nobody_wins_where_nothing_was_sustained() -> None:
    """There are no leaders."""
    assert find_leaders(make_result(CELLS[0], "failed"), rated(CELLS[1], None, 3, "upper-bound")) == ()


def test_the_summary_begins_with_the_winners(run: Path) -> None:
    """A point is open if a system without a result may turn out the best."""
    summary = summarize_run(read_run_data(run))
    assert summary.startswith(
        "python/kafka is the fastest at 3 of 6 points of the map (by at least 1.5 times); 1 is tied within 15 %, "
        "2 are open."
    )


@pytest.mark.parametrize(
    ("results", "text"),
    [
        ((rated(CELLS[0], 190, 210), rated(CELLS[1], 95, 105)), "a/kafka leads by 1.8 to 2.2 times"),
        ((rated(CELLS[0], 98, 102), rated(CELLS[1], 98, 102)), "tie within 15 %"),
        ((rated(CELLS[0], 80, 120), rated(CELLS[1], 80, 120)), "open: a/kafka or b/kafka"),
        ((rated(CELLS[0], 80, 120), make_result(CELLS[1], "unsupported")), "only a/kafka"),
        ((make_result(CELLS[0], "unsupported"),), "no winner"),
    ],
    ids=["leads", "tie", "open", "single", "none"],
)
def test_a_decision_is_told_in_a_few_words(results: tuple[Result, ...], text: str) -> None:
    """It names who leads and by how much, or who may."""
    (ranking,) = rank_cells([CellData(cell, result, ()) for cell, result in zip(CELLS, results, strict=False)])
    assert describe_decision(ranking.decision) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.043, 1.111, "1.04 to 1.12 times"),
        (1.44, 1.86, "1.4 to 1.9 times"),
        (144.9, None, "at least 144 times"),
        (1.5, 12.31, "1.5 to 13 times"),
        (1.002, 1.31, "up to 1.4 times"),
        (1.002, None, "an unknown factor"),
    ],
    ids=["small", "usual", "at least", "wide", "from nearly nothing", "unknown"],
)
def test_the_limits_of_a_ratio_are_rounded_outwards(low: float, high: float | None, text: str) -> None:
    """The text claims no more than the limits."""
    assert format_ratio(low, high) == text


@pytest.mark.parametrize(
    ("ends", "text"),
    [((97, 103), "±3 %"), ((88, 111), "±12 %"), ((69, 177), "−31/+77 %"), ((100, None), "")],
    ids=["narrow", "about even", "uneven", "bound"],
)
def test_an_interval_is_a_distance_from_the_estimate(ends: tuple[float, float | None], text: str) -> None:
    """The farther end counts, both if they differ much; a bracket is called so."""
    low, high = ends
    result = make_result(CELLS[0], estimate_hz=100.0, low_hz=low, high_hz=high)
    assert format_error(result) == text
    assert format_error(replace(result, interval="bracket")) == ("bracket" if high else "")


def test_a_bracket_is_shown_as_one_and_decides_nothing(tmp_path: Path) -> None:
    """The scenario of an older run tells that its strategy gives no confidence intervals."""
    scenario = replace(QUICK, search=replace(QUICK.search, strategy="bisection"))
    run = tmp_path / "run"
    with open_run_folder(run, scenario) as store:
        for cell in scenario.cells():
            store.save_result(cell, replace(make_result(cell), interval=None, precision_reached=None))
    data = read_run_data(run)
    assert {row.interval.split()[0] for row in csv_table.make_rows(data)} == {"bracket"}
    assert summarize_run(data).startswith(
        "No system is certainly the fastest at any of 6 points of the map: 6 are open (brackets are no confidence "
        "intervals)."
    )


def test_a_thinned_timeline_keeps_its_peaks() -> None:
    """The largest backlog of a long trial is drawn."""
    at = [0.1 * n for n in range(5000)]
    processed = [0 if n == 3333 else n for n in range(5000)]
    counts = list(range(5000))
    trial = JudgedTrial(
        make_measurement(0, 10.0, 10.0, series=Series(at, counts, counts, processed)), Verdict("sustained")
    )
    timeline = make_trial_timeline(trial)
    assert len(timeline.at) <= 200
    assert max(timeline.backlog) == 3333
