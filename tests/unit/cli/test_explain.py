"""`bench explain` says what limits a cell, and how to get a trace where there is none."""

import json

import pytest
from sample_runs import QUICK, make_measurement, open_run_folder

from bench.cli.explain import explain
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.trace import Sample, Span, TraceEvents, TraceMessage

CELL = Cell("python", "kafka", 100, 0.01)
OTHER = Cell("spark", "kafka", 100, 0.0)
S = 10**9
TRACE = TraceEvents(
    [Span("w 1", "processing", 0, 9 * S, "work"), Span("w 1", "idle(source)", 9 * S, 20 * S, "work")],
    [TraceMessage("control", "driver", "w 1", 0, S)],
    [Sample(S, "load generator", "late_s", 0.5)],
)


@pytest.fixture
def folder(tmp_path):
    with open_run_folder(tmp_path / "run", QUICK) as store:
        store.add(CELL, make_measurement(0, 90.0, 100.0, trace=TraceEvents(TRACE.spans)))
        store.add(OTHER, make_measurement(0, 90.0, 100.0))
    return tmp_path / "run"


def test_a_cell_is_explained_in_a_sentence_and_tables(folder, capsys):
    """The first line names the cell, its trial and the shares."""
    explain(folder, "python")
    first, head, *rows = capsys.readouterr().out.splitlines()
    assert first.startswith("python/kafka at 100 B, 10 ms, 90 /s (trial 0, sustained): 70% of the critical path is ")
    assert "critical path" in head
    assert any(row.startswith("processing      burning the messages’ CPU cost ") and "70.0%" in row for row in rows)
    assert any(row.startswith("w 1") for row in rows)


def test_cells_without_a_trace_are_left_out_where_others_have_one(folder, capsys):
    """All cells are explained when none is named."""
    explain(folder, "", as_json=True)
    (only,) = json.loads(capsys.readouterr().out)
    assert (only["cell"], only["trial"], only["straggler"]) == (CELL.name, 0, None)
    assert {row["activity"]: round(row["critical"], 3) for row in only["activities"]} == {
        "processing": 0.7, "idle(source)": 0.3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("spark", {}, "bench run --trace"),
        ("storm", {}, "no cell of"),
        ("python", {"trial": 7}, "there are 0"),
    ],
    ids=["not traced", "no such cell", "no such trial"],
)
def test_what_cannot_be_explained_is_said_in_one_line(folder, name, options, why):
    """With what to do instead."""
    with pytest.raises(UsageError, match=why) as refused:
        explain(folder, name, **options)
    assert "\n" not in str(refused.value)


def test_a_trace_is_written_for_perfetto(tmp_path, capsys):
    """As Chrome's JSON: names of threads, spans in microseconds, arrows and curves."""
    folder, file = tmp_path / "run", tmp_path / "trace.json"
    with open_run_folder(folder, QUICK) as store:
        store.add(CELL, make_measurement(0, 90.0, 100.0, trace=TRACE))
    explain(folder, CELL.name, perfetto=file)
    events = json.loads(file.read_bytes())["traceEvents"]
    kinds = {kind: [event for event in events if event["ph"] == kind] for kind in "MXsfC"}
    assert {event["args"]["name"] for event in kinds["M"]} == {"w 1", "driver"}
    assert [kinds["X"][0][key] for key in ("name", "ts", "dur")] == ["processing", 0.0, 9e6]
    assert [(event["ph"], event["ts"]) for event in (*kinds["s"], *kinds["f"])] == [("s", 0.0), ("f", 1e6)]
    assert kinds["C"][0]["args"] == {"value": 0.5}


def test_perfetto_takes_one_cell(tmp_path):
    """The message names the cells that there are."""
    with open_run_folder(tmp_path / "run", QUICK) as store:
        for cell in (CELL, OTHER):
            store.add(cell, make_measurement(0, 90.0, 100.0, trace=TRACE))
    with pytest.raises(UsageError, match="takes one cell, and there are 2"):
        explain(tmp_path / "run", "", perfetto=tmp_path / "trace.json")
