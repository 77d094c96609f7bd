"""`bench explain` says what limits a cell, and how to get a trace where there is none."""

import json

import pytest
from msgspec.structs import replace
from sample_runs import QUICK, make_measurement, make_result, open_run_folder
from simulated_runs import run_simulated

from bench.cli.explain import explain, try_change
from bench.config.scenario import Grid, Scenario, Search
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Batches
from bench.model.message_sizes import MessageSize
from bench.model.trace import Span, TraceEvents, TraceMessage, TraceSample
from bench.runner.explanation import choose_trial, explain_trial, read_traced_trials
from bench.system import host_info
from bench.units import Share

CELL = Cell("python", "kafka", 100, 0.01)
OTHER = Cell("spark", "kafka", 100, 0.0)
S = 10**9
TRACE = TraceEvents(
    [Span("w 1", "processing", 0, 9 * S, "work"), Span("w 1", "idle(source)", 9 * S, 20 * S, "work")],
    [TraceMessage("control", "driver", "w 1", 0, S)],
    [TraceSample(S, "load generator", "late_s", 0.5)],
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


def test_what_was_sampled_is_in_a_table_of_its_own(tmp_path, capsys):
    """The means in the measured time; in the JSON, too."""
    sampled = [TraceSample(5 * S, "sender 0", "round_trip_s", 0.25)]
    with open_run_folder(tmp_path / "run", QUICK) as store:
        store.add(CELL, make_measurement(0, 90.0, 100.0, trace=replace(TRACE, samples=sampled)))
    explain(tmp_path / "run", CELL.name)
    assert capsys.readouterr().out.splitlines()[-1].split() == ["sender", "0:", "round_trip_s", "0.25"]
    explain(tmp_path / "run", CELL.name, as_json=True)
    (only,) = json.loads(capsys.readouterr().out)
    assert only["samples"] == [{"entity": "sender 0", "metric": "round_trip_s", "mean": 0.25}]


def test_cells_without_a_trace_are_left_out_where_others_have_one(folder, capsys):
    """All cells are explained when none is named; a line says which are not."""
    explain(folder, "", as_json=True)
    printed = capsys.readouterr()
    (only,) = json.loads(printed.out)
    assert "cells were not traced; `bench run --trace`" in printed.err
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


def test_no_arrow_of_perfetto_goes_back_in_time(tmp_path, capsys):
    """Clocks of several hosts differ: a message that seems to arrive before it was sent takes no time."""
    file, trace = (
        tmp_path / "trace.json",
        replace(TRACE, messages=[TraceMessage("data", "w 1", "driver", 5 * S, 4 * S)]),
    )
    with open_run_folder(tmp_path / "run", QUICK) as store:
        store.add(CELL, make_measurement(0, 90.0, 100.0, trace=trace))
    explain(tmp_path / "run", CELL.name, perfetto=file)
    events = json.loads(file.read_bytes())["traceEvents"]
    assert [event["ts"] for event in events if event["ph"] in "sf"] == [5e6, 5e6]


def test_perfetto_takes_one_cell(tmp_path):
    """The message names the cells that there are."""
    with open_run_folder(tmp_path / "run", QUICK) as store:
        for cell in (CELL, OTHER):
            store.add(cell, make_measurement(0, 90.0, 100.0, trace=TRACE))
    with pytest.raises(UsageError, match="takes one cell, and there are 2"):
        explain(tmp_path / "run", "", perfetto=tmp_path / "trace.json")


@pytest.fixture
def slow_batches(tmp_path):
    """The folder of a run of which one cell spends 0.4 of each batch on planning; its rate was 90 /s."""
    scenario = Scenario("quick", ("spark/kafka",), Grid((MessageSize(100),)), search=Search(precision=Share(0.2)))
    spans = []
    for second in range(13):
        cut = second * S + 2 * S // 5
        spans += [Span("driver", "planning", second * S, cut), Span("driver", "processing", cut, (second + 1) * S)]
    changes = {"batches": Batches([float(n) for n in range(12)], [n + 1.0 for n in range(12)], [90] * 12)}
    changes |= {"trace": TraceEvents(spans), "cpu": {"framework": 10.0, "busy": 10.0, "steal": 0.0, "available": 20.0}}
    with open_run_folder(tmp_path / "run", scenario, **{**host_info.describe(""), "versions": {}}) as store:
        store.add(OTHER, make_measurement(0, 120.0, 90.0, batch=1.0, **changes))
        store.save_result(OTHER, make_result(OTHER, low_hz=80.0, estimate_hz=90.0, high_hz=100.0, growing_hz=None))
    return tmp_path / "run"


def test_the_advice_is_tried_in_a_run_of_its_own(slow_batches, tmp_path, capsys):
    """The table has the three rates; the simulated system is far faster than the cell was."""
    explained = explain_trial(slow_batches, choose_trial(read_traced_trials(slow_batches)[OTHER]))
    try_change(slow_batches, explained, "2 min", tmp_path / "tried", run_simulated)
    said = capsys.readouterr().out
    assert "trying a longer batch interval: settings.spark.batch_interval 1 s -> 2 s" in said
    rows = {line.split()[0]: line for line in said.splitlines() if line}
    assert "80 /s .. 100 /s" in rows["before"]
    assert "x1.33" in rows["predicted"]
    assert "the prediction did not hold" in said
    (folder,) = (tmp_path / "tried").iterdir()
    assert folder.name.startswith("spark-kafka-100B-0ms-try-batch_interval-2.0s-")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"budget": "soon"}, "allowed: a duration"),
        ({"budget": "0 s"}, "allowed: a duration over 0 s"),
        ({"as_json": True}, "leave one of them out"),
    ],
    ids=["budget", "no budget", "json"],
)
def test_options_of_a_try_are_checked_first(slow_batches, tmp_path, options, why):
    """Nothing is run."""
    with pytest.raises(UsageError, match=why):
        explain(slow_batches, "", try_advice=True, out=tmp_path / "tried", **options)
    assert not (tmp_path / "tried").exists()


def test_a_try_takes_one_cell(tmp_path):
    """The message names the cells that there are."""
    with open_run_folder(tmp_path / "run", QUICK) as store:
        for cell in (CELL, OTHER):
            store.add(cell, make_measurement(0, 90.0, 100.0, trace=TRACE))
    with pytest.raises(UsageError, match="--try: takes one cell, and there are 2"):
        explain(tmp_path / "run", "", try_advice=True)


def test_a_profile_explains_nothing(folder):
    """An option that it would ignore is refused."""
    with pytest.raises(UsageError, match="--trial: --profile explains nothing"):
        explain(folder, "spark-tcp-1MB-0ms", profile=True, trial=3)


def test_a_profile_takes_one_cell(folder):
    """The names that fit are listed."""
    with pytest.raises(UsageError, match=r"--profile: takes one cell, and 2 have 'tcp-1MB'.*spark-tcp-1MB-0ms"):
        explain(folder, "tcp-1MB", profile=True)


def test_a_cell_without_a_rate_is_not_profiled(folder):
    """There is no load that it is known to sustain."""
    with pytest.raises(UsageError, match="spark-tcp-1MB-0ms: has no rate in"):
        explain(folder, "spark-tcp-1MB-0ms", profile=True)
