"""The bottleneck of a cell is found from the measurements of its trials, and not guessed."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sample_runs import QUICK, make_measurement, make_result

from bench.analysis.verdict import Verdict
from bench.config.scenario import LoadSettings
from bench.config.site import Site
from bench.model.cell import Cell
from bench.model.measurement import Bound, Measurement, Result, Series
from bench.storage.run_folder import RunRecord
from bench.units import Bandwidth
from frameworks.spark.site import SparkSite
from producers.kafka.site import KafkaSite
from reports.data.bottleneck import find_bottleneck
from reports.data.derived import compute_used_cores
from reports.data.run_data import CellData, JudgedTrial, RunData

FREE = Cell("spark", "kafka", 10_000, 0.0)


DEAR = Cell("spark", "kafka", 10_000, 0.01)
BESIDE = Cell("spark", "kafka", 1000, 0.01)


IDLE = {"framework": 4.0, "source": 0.5, "load": 0.5, "busy": 5.5, "seconds": 10.0, "available": 20.0}


def make_run_data(**site: Any) -> RunData:
    """Return a run without cells on a machine with two cores."""
    return RunData(Path(), RunRecord(1, QUICK, Site(**site), {"cores": 2}, "2026-05-04T10:00:00Z"), ())


def make_cell_data(
    cell: Cell, trial: Measurement, why: str = "backlog grew", word: Any = "overloaded", **result: Any
) -> CellData:
    """Return a cell at 100 /s with one trial above that rate."""
    rates = {"estimate_hz": 100.0, "low_hz": 97.0, "high_hz": 103.0}
    cell_result: Result = make_result(cell, result.pop("status", "measured"), **(rates | result))
    return CellData(cell, cell_result, (JudgedTrial(trial, Verdict(word, why, 0.1)),))


def overloaded(batch: float = 0.0, **changes: Any) -> Measurement:
    """Return a trial at 120 /s of a system that processes 100 /s."""
    return make_measurement(1, 120.0, 100.0, "search", batch, **changes)


@pytest.mark.parametrize(
    ("cpu", "kind"),
    [
        ({"framework": 15.0, "source": 3.0, "load": 1.0, "busy": 19.5}, "framework CPU"),
        ({"framework": 5.0, "source": 12.0, "load": 1.0, "busy": 19.0}, "broker CPU"),
        ({"framework": 6.0, "source": 1.0, "load": 12.0, "busy": 19.5}, "shared CPU"),
        ({"framework": 13.0, "source": 1.0, "load": 5.0, "busy": 19.5}, "shared CPU"),
        ({"framework": 2.0, "source": 13.0, "load": 4.0, "busy": 19.5}, "broker CPU"),
        ({"framework": 10.0, "source": 0.2, "load": 1.0, "busy": 12.0}, "one thread"),
        ({"framework": 4.0, "source": 0.2, "load": 1.0, "busy": 6.0}, "not known"),
    ],
    ids=[
        "framework",
        "broker",
        "generator",
        "generator beside the framework",
        "broker beside the generator",
        "one thread",
        "nobody",
    ],
)
def test_the_bottleneck_is_the_role_that_uses_the_cpu(cpu: dict[str, float], kind: str) -> None:
    """The trial just above the sustained rate decides, and the evidence has its figures."""
    bottleneck = find_bottleneck(
        make_run_data(), make_cell_data(FREE, overloaded(cpu=cpu | {"seconds": 10.0, "available": 20.0}))
    )
    assert bottleneck is not None
    assert bottleneck.kind == kind
    assert f"framework {cpu['framework'] / 10:.2f}" in bottleneck.evidence


def test_less_than_half_is_not_most() -> None:
    """Of 19.0 core-seconds the generator used 4, more than framework and broker; others used the rest."""
    cpu = {"framework": 3.0, "source": 1.0, "load": 4.0, "busy": 19.0, "seconds": 10.0, "available": 20.0}
    bottleneck = find_bottleneck(make_run_data(), make_cell_data(FREE, overloaded(cpu=cpu)))
    assert bottleneck is not None
    assert "busy, 21% of them with our load generator" in bottleneck.sentence


def test_a_rate_near_the_bound_is_limited_by_the_work_itself() -> None:
    """The CPU use of the trials does not matter."""
    bottleneck = find_bottleneck(make_run_data(), make_cell_data(DEAR, overloaded(), estimate_hz=190.0))
    assert bottleneck is not None
    assert (bottleneck.kind, "95%" in bottleneck.evidence) == ("CPU cost", True)


@pytest.mark.parametrize(("name", "kind"), [("disk", "disk"), ("network", "network")])
def test_a_rate_near_a_soft_bound_of_the_source_is_limited_by_it(name: str, kind: str) -> None:
    """The evidence has the share that was reached; a bound far above the rate limits nothing."""
    near, far = Bound(name, 105.0, hard=False), Bound(name, 400.0, hard=False)
    bottleneck = find_bottleneck(make_run_data(), make_cell_data(FREE, overloaded(cpu=IDLE), soft_bounds=(near,)))
    assert bottleneck is not None
    assert (bottleneck.kind, "95%" in bottleneck.evidence) == (kind, True)
    bottleneck = find_bottleneck(make_run_data(), make_cell_data(FREE, overloaded(cpu=IDLE), soft_bounds=(far,)))
    assert bottleneck is not None
    assert bottleneck.kind == "not known"


def test_a_full_link_is_the_bottleneck() -> None:
    """The bandwidth of the site file is the bound."""
    bottleneck = find_bottleneck(
        make_run_data(bandwidth=Bandwidth(1.05e6), sections={"kafka": KafkaSite("h:9092")}),
        make_cell_data(FREE, overloaded(cpu=IDLE)),
    )
    assert bottleneck is not None
    assert bottleneck.kind == "network"


@pytest.mark.parametrize(
    ("site", "usage", "kind", "figures"),
    [
        ({}, {"framework": {"gc_seconds": 4.0}}, "garbage collection", "for 40% of the time"),
        ({}, {"source": {"gc_seconds": 1.0, "written_bytes": 1e12}}, "not known", ""),
        (
            {"bandwidth": Bandwidth(125e6)},
            {"source": {"link_sent_bytes": 1.2e9, "link_received_bytes": 3e8}, "framework": {"sent_bytes": 9e9}},
            "network",
            "120 MB/s of 125 MB/s",
        ),
        (
            {"disk": Bandwidth(1e8)},
            {"source": {"read_bytes": 3e8, "written_bytes": 6e8}},
            "disk",
            "90 MB/s of 100 MB/s",
        ),
    ],
    ids=["garbage", "neither", "network", "disk"],
)
def test_a_resource_at_its_limit_is_the_bottleneck(site: Any, usage: Any, kind: str, figures: str) -> None:
    """Garbage collection counts always, network and disk only if the site file gives their bandwidth."""
    bottleneck = find_bottleneck(make_run_data(**site), make_cell_data(FREE, overloaded(cpu=IDLE, usage=usage)))
    assert bottleneck is not None
    assert bottleneck.kind == kind
    assert figures in bottleneck.evidence


@pytest.mark.parametrize(
    ("scenario", "cpu", "sentence"),
    [
        ({"settings": {"spark": {"cores": 2}}}, {"framework": 19.0, "busy": 25.0},
         "The framework uses all of the 2 cores it was given."),
        ({"load": LoadSettings(cores=6)}, {"framework": 14.0, "source": 5.0, "busy": 30.0},
         "All cores are busy, mostly with the framework."),
        ({"load": LoadSettings(cores=7)}, {"framework": 9.5, "source": 0.2, "busy": 20.0},
         "All cores are busy, mostly with the framework."),
    ],
    ids=["settings", "pinned", "one core left"],
)  # fmt: skip
def test_a_framework_that_uses_what_it_was_given_is_limited_by_that(scenario: Any, cpu: Any, sentence: str) -> None:
    """The other cores of the machine may be free: the framework could not use them."""
    run = RunRecord(1, replace(QUICK, **scenario), Site(), {"cores": 8}, "2026-05-04T10:00:00Z")
    usage = {"source": 0.5, "load": 0.5, "seconds": 10.0, "available": 80.0} | cpu
    bottleneck = find_bottleneck(RunData(Path(), run, ()), make_cell_data(FREE, overloaded(1.0, cpu=usage)))
    assert bottleneck is not None
    assert (bottleneck.kind, bottleneck.sentence) == ("framework CPU", sentence)


def test_an_overloaded_trial_below_the_rate_is_not_evidence() -> None:
    """It may have been the first trial of a cold system."""
    busy = {"framework": 19.0, "source": 0.5, "load": 0.5, "busy": 20.0, "seconds": 10.0, "available": 20.0}
    confirmed, cold = make_measurement(2, 100.0, 100.0, "confirm"), make_measurement(1, 60.0, 40.0, "search", cpu=busy)
    result = make_result(FREE, "lower-bound", reason="highest", estimate_hz=100.0, low_hz=100.0, confirmed_hz=100.0)
    trials = (
        JudgedTrial(cold, Verdict("overloaded", "backlog grew", 0.3)),
        JudgedTrial(confirmed, Verdict("sustained")),
    )
    bottleneck = find_bottleneck(make_run_data(), CellData(FREE, result, trials))
    assert bottleneck is not None
    assert bottleneck.sentence == "The system sustained the highest rate that the scenario allows."


def test_a_late_generator_is_named_with_its_lateness() -> None:
    """The evidence shows that the source did not push back."""
    late = make_measurement(1, 500.0, 500.0, late=1.2, blocked=0.0)
    bottleneck = find_bottleneck(
        make_run_data(), make_cell_data(FREE, late, "generator", "invalid", status="lower-bound", reason="generator")
    )
    assert bottleneck is not None
    assert bottleneck.kind == "generator"
    assert "1.2 s late; the source pushed back for 0 ms" in bottleneck.evidence


def test_batches_longer_than_their_interval_with_idle_cores_are_the_bottleneck() -> None:
    """The CPU is not named."""
    at = [2.0 * n for n in range(1, 7)]
    counts = [240 * n for n in range(1, 7)]
    series = Series(at, counts, counts, [200 * n for n in range(1, 7)])
    bottleneck = find_bottleneck(make_run_data(), make_cell_data(FREE, overloaded(1.0, series=series, cpu=IDLE)))
    assert bottleneck is not None
    assert bottleneck.kind == "batches"


def test_a_source_that_pushes_back_while_cores_are_idle_is_the_bottleneck() -> None:
    """The evidence has the time of the back-pressure."""
    bottleneck = find_bottleneck(
        make_run_data(), make_cell_data(FREE, overloaded(blocked=6.0, cpu=IDLE), "the source pushed back")
    )
    assert bottleneck is not None
    assert bottleneck.kind == "source"


@pytest.mark.parametrize(
    ("changes", "why", "kind"),
    [({"ended": "framework died", "note": "out of memory"}, "", "died"), ({}, "p99 3 s above 2 s", "latency")],
    ids=["died", "latency"],
)
def test_the_reason_of_a_verdict_is_the_bottleneck(changes: dict[str, Any], why: str, kind: str) -> None:
    """A process that died and a missed latency objective are named."""
    bottleneck = find_bottleneck(make_run_data(), make_cell_data(FREE, overloaded(**changes), why))
    assert bottleneck is not None
    assert bottleneck.kind == kind


@pytest.mark.parametrize("status", ["failed", "unsupported"])
def test_a_cell_without_a_rate_has_no_bottleneck(status: str) -> None:
    """Its status has a reason instead."""
    assert find_bottleneck(make_run_data(), make_cell_data(FREE, overloaded(), status=status)) is None


@pytest.mark.parametrize(
    ("site", "gone"),
    [
        ({"cores": 16, "sections": {"spark": SparkSite("spark://h:7077")}}, "framework"),
        ({"sections": {"kafka": KafkaSite("h:9092")}}, "source"),
    ],
    ids=["framework", "source"],
)
def test_the_cpu_of_a_service_on_another_host_is_no_bottleneck(site: Any, gone: str) -> None:
    """Only a client of the service runs on this machine; the cores that were used are not known."""
    cpu = {
        "framework": 3.0,
        "source": 0.0,
        "load": 2.0,
        "harness": 1.0,
        "busy": 6.0,
        "seconds": 10.0,
        "available": 20.0,
    }
    del cpu[gone]
    cell_data = make_cell_data(BESIDE, overloaded(cpu=cpu))
    bottleneck = find_bottleneck(make_run_data(**site), cell_data)
    assert bottleneck is None or bottleneck.kind in ("not known", "CPU cost")
    (trial,) = cell_data.trials
    sustained = JudgedTrial(trial.measurement, Verdict("sustained"))
    assert compute_used_cores(replace(cell_data, trials=(sustained,))) is None
