"""The advice of an explanation becomes a scenario of its own and a rate that it should give."""

import json

import pytest
from msgspec.structs import replace
from sample_runs import make_measurement, make_result, open_run_folder

from bench.analysis.verdict import Verdict
from bench.config.scenario import Grid, LatencyTrials, Scenario
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Batches
from bench.model.message_sizes import MessageSize
from bench.model.trace import Span, TraceEvents
from bench.runner.explanation import choose_trial, explain_trial, read_traced_trials
from bench.runner.intervention import plan_intervention
from bench.system import host_info
from bench.units import Seconds, Share

CELL = Cell("spark", "kafka", 100, 0.0)
S = 10**9
SCENARIO = Scenario(
    "quick",
    ("spark/kafka", "python/kafka"),
    Grid((MessageSize(100), MessageSize(10_000))),
    latency=LatencyTrials((Share(0.5),)),
    settings={"spark": {"preset": "shipped"}},
)
RATES = {"low_hz": 80.0, "estimate_hz": 90.0, "high_hz": 100.0, "growing_hz": None}
CPU = {"framework": 12.0, "busy": 12.0, "steal": 0.0, "available": 20.0}


def trace(activity, share):
    """Return a driver that does this for a part of each second, and processes in the rest."""
    spans = []
    for second in range(13):
        cut = round((second + share) * S)
        spans += [
            Span("driver", activity, second * S, cut, "batch"),
            Span("driver", "processing", cut, (second + 1) * S, "batch"),
        ]
    return TraceEvents(spans)


def explained(path, activity="planning", share=0.4, cores=None, cpu=CPU, **result):
    """Return the folder of a run, of this machine or one with other cores, and its only traced trial, explained."""
    batches = Batches([float(n) for n in range(12)], [n + 1.0 for n in range(12)], [90] * 12)
    facts = {**host_info.describe(""), "cores": cores or host_info.cores(), "versions": {}}
    with open_run_folder(path / "run", SCENARIO, **facts) as store:
        changes = {"batches": batches, "trace": trace(activity, share), "cpu": cpu, "ended": "complete"}
        store.add(CELL, make_measurement(0, 100.0, 90.0, batch=1.0, **changes))
        store.save_result(CELL, make_result(CELL, **(RATES | result)))
    (one,) = [choose_trial(trials) for trials in read_traced_trials(path / "run").values() if trials]
    return path / "run", explain_trial(path / "run", replace(one, verdict=Verdict("overloaded")))


def test_the_scenario_is_that_of_the_cell_with_the_change(tmp_path):
    """The other settings and the strategy are those of the run; name and title say what was changed."""
    planned = plan_intervention(*explained(tmp_path), Seconds(60))
    scenario = planned.scenario
    assert scenario.cells() == (CELL,)
    assert scenario.settings["spark"] == {"preset": "shipped", "batch_interval": "2.0 s"}
    assert scenario.name == "spark-kafka-100B-0ms-try-batch_interval-2.0s"
    assert (float(scenario.search.budget), scenario.search.total, scenario.latency.at) == (60, None, ())
    assert float(scenario.search.start) == pytest.approx(planned.predicted.estimate)
    assert "settings.spark.batch_interval 1 s -> 2 s" in scenario.title


def test_the_rate_is_predicted_from_the_trace(tmp_path):
    """A fixed part of 0.4 gives 0.8 / 0.6 times the rate."""
    planned = plan_intervention(*explained(tmp_path), Seconds(60))
    assert planned.predicted.estimate == pytest.approx(90.0 * 0.8 / 0.6, rel=1e-3)
    assert planned.change == "a longer batch interval"


def test_the_rate_is_predicted_from_the_search_where_it_knows_the_batches(tmp_path):
    """A fixed part of 0.5 gives 0.75 / 0.5 times the rate, whatever the trace shows."""
    found = explained(tmp_path, cpu=CPU | {"framework": 2.0, "busy": 2.0}, growing_hz=180.0)
    planned = plan_intervention(*found, Seconds(60))
    assert planned.predicted.estimate == pytest.approx(90.0 * 0.75 / 0.5)


def test_a_framework_of_a_site_is_not_limited_by_the_cores_of_this_machine(tmp_path):
    """They send, and are busy with that: beside 7.9 of 20 core-seconds there is time for 1.17 to 1.35 times the rate.

    Of the framework's 12 core-seconds 4.8 are for batches, and 2.4 for longer ones.
    """
    found = explained(tmp_path, cpu=CPU | {"busy": 19.9})
    here = plan_intervention(*found, Seconds(60)).predicted.estimate
    run = json.loads((found[0] / "run.json").read_text())
    run["site"]["sections"] = {"spark": {"master": "spark://spark-1:7077", "driver_host": "10.0.0.5", "cores": 16}}
    (found[0] / "run.json").write_text(json.dumps(run))
    assert here == pytest.approx(90.0 * (17.6 / 15.1 * 9.7 / 7.2) ** 0.5)
    assert plan_intervention(*found, Seconds(60)).predicted.estimate == pytest.approx(90.0 * 0.8 / 0.6, rel=1e-3)


@pytest.mark.parametrize(
    ("activity", "result", "why"),
    [
        ("wal-commit", {"status": "lower-bound", "high_hz": None}, "is lower-bound"),
        ("source-read", {}, "a faster source: no setting makes it"),
        ("unknown", {}, "there is nothing to try"),
    ],
    ids=["no interval", "no setting", "no advice"],
)
def test_what_cannot_be_tried_is_refused_in_one_line(tmp_path, activity, result, why):
    """With the reason."""
    with pytest.raises(UsageError, match=why) as refused:
        plan_intervention(*explained(tmp_path, activity, 0.95, **result), Seconds(60))
    assert "\n" not in str(refused.value)


def test_a_run_of_another_machine_is_refused(tmp_path):
    """Its rates say nothing about this one."""
    found = explained(tmp_path, cores=host_info.cores() + 1)
    with pytest.raises(UsageError, match="would not be comparable"):
        plan_intervention(*found, Seconds(60))
