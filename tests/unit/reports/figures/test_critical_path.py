"""Cells with a trace show their critical path, and their bottleneck comes from it."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from matplotlib.figure import Figure
from sample_runs import make_measurement, make_result, make_run, make_single_scenario, open_run_folder

from bench.model.cell import Cell
from bench.model.trace import ACTIVITIES, MESSAGE_KINDS, Activity, Span, TraceEvents
from reports.data.bottleneck import find_bottleneck
from reports.data.run_data import CellData, RunData, read_run_data
from reports.figures.critical_path import STYLES, draw_beside_profile, draw_over_time, make_critical_path_figures
from reports.formats import html_page

CELL = Cell("spark", "kafka", 10_000, 0.0)
S = 10**9
CPU = {"framework": 4.0, "source": 0.5, "load": 0.5, "busy": 5.1, "steal": 0.0, "seconds": 10.0, "available": 20.0}


def trace(activity: Activity, share: float, worker: str = "driver") -> list[Span]:
    """Return seconds of which a share is one activity, and the rest another one."""
    rows = []
    for n in range(20):
        middle = round((n + share) * S)
        rows += [Span(worker, activity, n * S, middle, "o"), Span(worker, "processing", middle, (n + 1) * S, "o")]
    return rows


def make_traced_run(folder: Path, spans: list[Span], rate: float = 120.0, cpu: dict[str, float] = CPU) -> RunData:
    """Write a run of one cell, at 100 /s, with a trace of its overloaded trial; return its data."""
    with open_run_folder(folder, make_single_scenario(CELL)) as store:
        store.add(CELL, make_measurement(0, 95.0, 100.0, batch=1.0))
        store.add(CELL, make_measurement(1, rate, 100.0, batch=1.0, cpu=cpu, trace=TraceEvents(spans)))
        result = make_result(CELL, estimate_hz=100.0, low_hz=97.0, high_hz=103.0, soft_bounds=())
        store.save_result(CELL, result)
    return read_run_data(folder)


def cell_of(run_data: RunData) -> CellData:
    return next(one for one in run_data.cells if one.cell == CELL)


@pytest.mark.parametrize(
    ("activity", "kind"),
    [
        ("planning", "batches"), ("offset-commit", "commits"), ("source-read", "source"), ("gc", "garbage collection"),
        ("deserialize", "framework CPU"),
    ],
)  # fmt: skip
def test_the_bottleneck_is_what_the_critical_path_consists_of(tmp_path, activity, kind):
    """The sentence of the explanation is the evidence."""
    run_data = make_traced_run(tmp_path / "run", trace(activity, 0.8))
    bottleneck = find_bottleneck(run_data, cell_of(run_data))
    assert bottleneck.kind == kind
    assert "of the critical path is" in bottleneck.evidence


def test_the_bottleneck_may_be_one_worker(tmp_path):
    """That works while another one idles."""
    idle = [Span("b", "idle(source)", 0, 20 * S, "o")]
    run_data = make_traced_run(tmp_path / "run", trace("deserialize", 0.5, "a") + idle)
    assert find_bottleneck(run_data, cell_of(run_data)).kind == "straggler"


def test_work_beside_a_busy_load_generator_is_limited_by_the_shared_cpu(tmp_path):
    """The critical path is work, and the CPU use says why it takes so long."""
    cpu = CPU | {"framework": 6.0, "source": 1.0, "load": 12.0, "busy": 19.3}
    run_data = make_traced_run(tmp_path / "run", trace("deserialize", 0.9), cpu=cpu)
    assert find_bottleneck(run_data, cell_of(run_data)).kind == "shared CPU"


def test_a_path_without_a_main_part_leaves_the_bottleneck_to_the_rules(tmp_path):
    """Nothing is named that is not there."""
    run_data = make_traced_run(tmp_path / "run", [Span("a", "unknown", 0, 20 * S, "o")])
    assert find_bottleneck(run_data, cell_of(run_data)).kind not in ("batches", "commits", "straggler")


def test_the_page_shows_the_path_of_a_traced_cell(tmp_path):
    """As a figure, and as the evidence in its details."""
    run_data = make_traced_run(tmp_path / "run", trace("planning", 0.8))
    page = html_page.render_page(run_data)
    assert "Critical paths" in page
    assert 'aria-label="Critical path of spark/kafka, 10 kB, 0 ms, trial 1 at 120 /s"' in page
    assert "80% of the critical path is planning batches" in page


def test_a_run_without_traces_has_no_such_part(tmp_path):
    """Neither a heading nor a figure."""
    run_data = read_run_data(make_run(tmp_path / "run", make_single_scenario(CELL)))
    assert make_critical_path_figures(run_data) == []
    assert "Critical paths" not in html_page.render_page(run_data)


def test_a_damaged_trace_is_left_out(tmp_path):
    """The page says on top which file differs."""
    assert make_traced_run(tmp_path / "run", trace("planning", 0.8)).explained
    next((tmp_path / "run" / "traces").glob("*-spans.parquet")).write_bytes(b"")
    damaged = read_run_data(tmp_path / "run")
    assert not damaged.explained
    assert "spans.parquet" in damaged.disagreement


def test_figures_return_their_artists(tmp_path):
    """A bar for each activity of each window, and of each column."""
    run_data = make_traced_run(tmp_path / "run", trace("planning", 0.8))
    explained = run_data.explained[CELL]
    over_time, beside = Figure().subplots(1, 2)
    assert len(draw_over_time(over_time, explained.participation)) == 2 * explained.participation.windows.count
    drawn = draw_beside_profile(beside, explained.explanation)
    assert {text.get_text() for text in drawn if hasattr(text, "get_text")} == {"80%", "20%"}


def test_every_activity_has_a_style_of_its_own():
    """Of colour and hatch."""
    assert STYLES.keys() == {*ACTIVITIES, *MESSAGE_KINDS}
    assert len(set(STYLES.values())) == len(STYLES)
