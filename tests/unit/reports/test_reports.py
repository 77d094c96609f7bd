"""Reports are made from a run's folder alone, and say no more than it does."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

from sample_runs import QUICK, a_run, an_open_store, large, result_of, seen

from bench.analysis.verdict import Verdict
from bench.config.scenario import Grid, Scenario
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Buckets, Result, Series
from bench.storage.run_folder import RunFolder
from bench.units import Size
from reports.data.run_data import CellData, JudgedTrial, read_run_data
from reports.data.winners import contest_of, finding_of
from reports.figures.timeline import trace_of
from reports.formats import csv_table, html_page, images, json_report, pdf


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with every status and one unfinished cell, with all its reports."""
    folder = a_run(tmp_path_factory.mktemp("results") / "quick")
    for report in (html_page, pdf, images, json_report, csv_table):
        report.write(folder)
    return folder


@pytest.fixture(scope="module")
def html(run: Path) -> str:
    return (run / "report.html").read_text(encoding="utf-8")


class Elements(HTMLParser):
    """The attributes of every element of a html_page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.found if (value := attributes.get(attribute)) is not None]


@pytest.mark.parametrize(
    ("report", "name"),
    [(html_page, "report.html"), (pdf, "report.pdf"), (json_report, "report.json"), (csv_table, "cells.csv")],
    ids=["html", "pdf", "json", "csv"],
)
def test_a_report_names_the_file_that_it_wrote(run: Path, report: Any, name: str) -> None:
    """What write returns is there."""
    assert report.write(run) == [run / name]
    assert (run / name).stat().st_size > 0


def test_pictures_are_the_maps_and_a_timeline_for_each_cell(run: Path) -> None:
    """Each picture is there as SVG and as PNG."""
    names = {path.stem for path in (run / "figures").glob("*.svg")}
    kinds = ("map", "efficiency", "throughput", "cpu", "limits")
    systems = ("spark-tcp", "spark-files", "spark-kafka", "plain-kafka")
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
    """Each cell is linked from the winner map, from its system's maps and from the csv_table, and each link has its target."""
    elements = Elements(html)
    targets = [href[1:] for href in elements.all("href") if href.startswith("#cell-")]
    assert set(targets) == {known.anchor for known in read_run_data(run).cells}
    assert all(targets.count(target) >= 3 for target in set(targets))  # two maps and the table
    assert set(targets) <= set(elements.all("id"))


def test_an_id_occurs_once_in_a_page(html: str) -> None:
    """The figures do not take ids from each other."""
    ids = Elements(html).all("id")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "word", ["measured", "lower-bound", "upper-bound", "unstable", "failed", "unsupported", "not measured"]
)
def test_a_status_is_said_and_explained(html: str, word: str) -> None:
    """It is in the table and in the glossary."""
    assert f'">{word}</span></td>' in html
    assert f"<dt>{word}</dt>" in html


@pytest.mark.parametrize(
    ("system", "claim"), [("plain-kafka", "≥ 184 k/s"), ("spark-tcp", "≤ 89.7 /s")], ids=["least", "most"]
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


def a_hostile_run(folder: Path) -> Path:
    """A run whose every text wants to be obeyed."""
    scenario = Scenario(name="evil", title=EVIL, systems=("a/b", "c/$x_"), grid=Grid((Size(100),)))
    with an_open_store(folder, scenario, command=EVIL, versions={EVIL: EVIL}, revision=[EVIL]) as store:
        for cell in scenario.cells():
            store.add(cell, seen(0, 50.0, 40.0, note=EVIL))
            store.finish(cell, result_of(cell, "failed", reason=EVIL))
    return folder


def test_hostile_text_is_escaped_in_the_page(tmp_path: Path) -> None:
    """No title, reason or note becomes an element, and none is a template."""
    (path,) = html_page.write(a_hostile_run(tmp_path / "run"))
    text = path.read_text(encoding="utf-8")
    assert [tag for tag, _ in Elements(text).found if tag == "script"] == ["script", "script"]  # our own
    assert text.count("&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;") >= 4
    assert text.count("\\u003c/title>\\u003cscript>alert(1)") >= 2  # in the data
    assert text.count("{{ 7 * 7 }}") >= 6


def test_hostile_text_is_only_text_in_the_pdf(tmp_path: Path) -> None:
    """Typst neither panics nor evaluates; the document's title is the text as it is."""
    (path,) = pdf.write(a_hostile_run(tmp_path / "run"))
    assert b"#panic" in path.read_bytes()


def test_the_pdf_has_pages_and_its_fonts_within(run: Path) -> None:
    """It can be read on a machine without our fonts."""
    content = (run / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 3
    assert re.findall(rb"/FontFile[23]", content)


@pytest.mark.parametrize(
    ("report", "pattern"),
    [(html_page, "report.html"), (pdf, "report.pdf"), (images, "figures/*.svg"), (json_report, "report.json"), (csv_table, "cells.csv")],
    ids=["html", "pdf", "svg", "json", "csv"],
)  # fmt: skip
def test_the_same_run_gives_the_same_bytes(run: Path, report: Any, pattern: str) -> None:
    """Nothing in a report comes from the clock or from chance."""
    before = {path: path.read_bytes() for path in run.glob(pattern)}
    report.write(run)
    assert before
    assert {path: path.read_bytes() for path in run.glob(pattern)} == before


def test_the_csv_has_the_names_of_the_results(run: Path) -> None:
    """A column for each field of cells.json; what is nested there has a dot."""
    with (run / "cells.csv").open(encoding="utf-8", newline="") as file:
        columns = csv.DictReader(file).fieldnames or []
    nested = {
        "latency_s": [f"latency_s.{q}" for q in ("p50", "p90", "p99", "max")],
        "cpu_share": ["cpu_share.framework", "cpu_share.source"],
        "objectives": [],
        "soft_bounds": ["soft_bounds.network", "soft_bounds.disk"],
    }
    wanted = [name for field in Result.__struct_fields__ for name in nested.get(field, [field])]
    assert [name for name in columns if name != "bound_share"] == wanted


def test_the_csv_leaves_empty_what_does_not_exist(run: Path) -> None:
    """A cell that was not measured has a line without numbers."""
    with (run / "cells.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    last = lines[-1]
    assert (len(lines), last["status"], last["estimate_hz"], last["lost"]) == (24, "not measured", "", "")


def test_the_json_says_what_the_page_says(run: Path) -> None:
    """A format, a finding, and every cell with its limit in a sentence and each of its trials."""
    said = json.loads((run / "report.json").read_text(encoding="utf-8"))
    assert (said["format"], len(said["cells"])) == (1, 24)
    assert said["finding"] in (run / "report.html").read_text(encoding="utf-8")
    measured = next(cell for cell in said["cells"] if cell["status"] == "measured")
    assert measured["limit"]
    assert [trial["number"] for trial in measured["trials_made"]] == list(range(measured["trials"]))
    assert said["cells"][-1]["estimate_hz"] is None


def test_latency_trials_are_drawn_for_their_cell(tmp_path: Path) -> None:
    """A panel for each rate, in the html_page, in the PDF and as a file; a run without such trials has no such part."""
    cell = QUICK.cells()[0]
    buckets = Buckets([3] * 3, ["due", "sent", "processing"], [3000, 2900, 2000], [500] * 3)
    with an_open_store(tmp_path / "run", QUICK) as store:
        for number, rate in enumerate((50.0, 80.0, 95.0)):
            store.add(cell, seen(number, rate, 100.0, "latency", latencies=buckets))
        store.finish(cell, result_of(cell))
    text = html_page.page_of(read_run_data(tmp_path / "run"))
    assert '<section id="latency">' in text
    assert text.count("share of messages") == 3
    assert pdf.write(tmp_path / "run")
    assert [path.stem for path in images.write(tmp_path / "run") if "latency" in path.stem]


def test_the_page_says_how_it_can_be_wrong(html: str) -> None:
    """The load's share of the machine, short trials, noise, intervals, bounds, and what no probe saw."""
    _, _, rest = html.partition('<section id="doubts">')
    doubts, _, _ = rest.partition("</section>")
    assert doubts.count("<li>") == 6


def test_an_unfinished_run_says_what_is_missing(html: str) -> None:
    """The cells without a result are named at the top."""
    assert "This run is not finished." in html
    assert "1 of 24 cells has no result yet" in html


@pytest.mark.parametrize(
    "report", [html_page, pdf, images, json_report, csv_table], ids=["html", "pdf", "png", "json", "csv"]
)
def test_trials_without_any_result_make_a_report(tmp_path: Path, report: Any) -> None:
    """A run that was killed in its first cell can be looked at."""
    run = a_run(tmp_path / "run", unfinished=QUICK.cells())
    store = RunFolder(run)
    store.add(QUICK.cells()[0], seen(0, 50.0, 40.0))
    assert all(path.exists() for path in report.write(run))


@pytest.mark.parametrize(
    "report", [html_page, pdf, images, json_report, csv_table], ids=["html", "pdf", "png", "json", "csv"]
)
def test_a_trial_without_counters_makes_a_report(tmp_path: Path, report: Any) -> None:
    """A load that died at once leaves an empty series."""
    run = a_run(tmp_path / "run", unfinished=QUICK.cells())
    RunFolder(run).add(QUICK.cells()[0], seen(0, 50.0, 40.0, ended="load died", offered=0, series=Series()))
    assert all(path.exists() for path in report.write(run))


def test_a_system_alone_has_no_winner_map(tmp_path: Path) -> None:
    """There is nothing to win."""
    scenario = Scenario(name="alone", systems=("plain/kafka",), grid=Grid((Size(1000),)))
    run = a_run(tmp_path / "run", scenario)
    (path,) = html_page.write(run)
    assert 'id="winners"' not in path.read_text(encoding="utf-8")


def test_a_folder_without_measurements_is_refused(tmp_path: Path) -> None:
    """The message says how to go on."""
    run = a_run(tmp_path / "run", unfinished=QUICK.cells())
    with pytest.raises(UsageError, match="no trial and no result yet"):
        html_page.write(run)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    """It is the person's to put right."""
    with pytest.raises(UsageError, match=r"run\.json"):
        html_page.write(tmp_path)


def test_a_page_of_192_cells_is_small(tmp_path: Path) -> None:
    """Six systems, eight sizes, four costs, eight trials each: it can be sent by mail."""
    run = a_run(tmp_path / "run", large(6, 8, 4), trials=8)
    (path,) = html_page.write(run)
    assert path.stat().st_size < 5_000_000


CELLS = [Cell(framework, "kafka", 100, 0.0) for framework in ("a", "b", "c")]


def leaders_of(*results: Result) -> tuple[str, ...]:
    """Who leads among the first cells' results."""
    return contest_of(
        100, 0.0, [CellData(cell, result, ()) for cell, result in zip(CELLS, results, strict=False)]
    ).leaders


def rated(cell: Cell, low: float | None, high: float | None, status: str = "measured") -> Result:
    """A result with that interval."""
    estimate = (low * high) ** 0.5 if low and high else low
    known: dict[str, Any] = {"low_hz": low, "high_hz": high, "estimate_hz": estimate}
    return result_of(cell, status, **known)


def test_a_system_above_all_intervals_wins() -> None:
    """Its sustained rate is more than any other can reach."""
    assert leaders_of(rated(CELLS[0], 100, 110), rated(CELLS[1], 80, 95)) == ("a/kafka",)


def test_overlapping_intervals_are_a_tie() -> None:
    """The higher estimate comes first, but does not win."""
    assert leaders_of(rated(CELLS[0], 90, 105), rated(CELLS[1], 100, 110)) == ("b/kafka", "a/kafka")


def test_a_lower_bound_is_never_beaten_for_certain() -> None:
    """What lies above it was not seen."""
    assert leaders_of(rated(CELLS[0], 100, 110), rated(CELLS[1], 50, None, "lower-bound")) == ("a/kafka", "b/kafka")


def test_a_lower_bound_above_all_others_wins() -> None:
    """At least that rate is enough."""
    assert leaders_of(rated(CELLS[0], 100, 110), rated(CELLS[1], 150, None, "lower-bound")) == ("b/kafka",)


def test_an_upper_bound_that_reaches_above_the_best_is_a_rival() -> None:
    """It may still be better."""
    assert leaders_of(rated(CELLS[0], 100, 110), rated(CELLS[1], None, 200, "upper-bound")) == ("a/kafka", "b/kafka")


def test_failed_and_unsupported_systems_are_no_rivals() -> None:
    """The one that runs is the best."""
    assert leaders_of(rated(CELLS[0], 1, 2), result_of(CELLS[1], "failed"), result_of(CELLS[2], "unsupported")) == (
        "a/kafka",
    )


def test_nobody_wins_where_nothing_was_sustained() -> None:
    """There is no best of nothing."""
    assert leaders_of(result_of(CELLS[0], "failed"), rated(CELLS[1], None, 3, "upper-bound")) == ()


def test_the_finding_counts_only_points_at_which_all_were_measured(run: Path) -> None:
    """A system that is still missing may turn out the best."""
    said = finding_of(read_run_data(run))
    assert said.startswith(
        "plain/kafka sustains the highest frequency at 3 of 6 points of the map; 2 are too close to call."
    )
    assert "At 1 some system has no answer yet." in said


def test_a_thinned_timeline_keeps_its_peaks() -> None:
    """However long the trial, its greatest backlog is drawn."""
    at = [0.1 * n for n in range(5000)]
    processed = [0 if n == 3333 else n for n in range(5000)]
    counts = list(range(5000))
    run_data = JudgedTrial(seen(0, 10.0, 10.0, series=Series(at, counts, counts, processed)), Verdict("sustained"))
    trace = trace_of(run_data)
    assert len(trace.at) <= 200
    assert max(trace.backlog) == 3333
