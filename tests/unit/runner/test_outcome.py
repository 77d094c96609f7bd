"""A search's answer is held against theory: bounds, the generator's limit, sanity; and results of cells without one."""

from dataclasses import replace as with_fields

import pytest
from msgspec.structs import replace

from bench.config.scenario import Grid, LatencyTrials, Scenario
from bench.config.site import LoadHosts, Site
from bench.errors import ImpossibleMeasurementError
from bench.model.measurement import Bound, Measurement, PlannedTrial, Result
from bench.model.message_sizes import MessageSize, Sizes
from bench.plugins.plugin import FILES_STAY
from bench.runner.cell_plan import CellPlan, plan_cell
from bench.runner.outcome import (
    check_sanity,
    finish_result,
    remaining_latency_trials,
    with_soft_bounds,
    without_rate,
)
from bench.units import Bandwidth, Seconds, Share
from producers.kafka.site import KafkaSite

RESULT = Result("python/kafka", "python", "kafka", 1000, 0.01, "measured")
SCENARIO = Scenario("x", ("python/kafka",), Grid((MessageSize(1000),), (Seconds(0.01),)))
TRIAL = Measurement(
    planned=PlannedTrial(3, 100.0, 1.0, 9.0, "search"), started="", ended="complete", batch_interval=0.0, seconds=10.0,
    offered=1000, sent=1000, failed=0, processed=1000, lost=0, duplicated=0, out_of_order=0, corrupted=0, drained=True,
    late=0.0, blocked=0.0, cpu_requested_s=0.0, cpu_used_s=0.0,
)  # fmt: skip


def plan(*bounds: Bound, scenario: Scenario = SCENARIO, site: Site | None = None) -> CellPlan:
    """Return the plan of the only cell on two cores; with these bounds where any are given."""
    planned = plan_cell(scenario.cells()[0], scenario, site or Site(), 2)
    return with_fields(planned, bounds=bounds) if bounds else planned


def test_a_framework_may_say_what_its_readers_must_know() -> None:
    """What Spark deletes, a longer stream does not find again; what Flink keeps, it does."""
    for system, settings, said in (
        ("spark/files", {}, False),
        ("spark/files", {"spark": {"clean": "between trials"}}, True),
        ("spark/files", {"spark": {"preset": "shipped"}}, True),
        ("spark/kafka", {"spark": {"preset": "shipped"}}, False),
        ("flink/files", {}, True),
        ("python/files", {}, False),
    ):
        scenario = replace(SCENARIO, systems=(system,), settings=settings)
        remark = finish_result(replace(RESULT, system=system), plan(scenario=scenario)).remark
        assert remark == (FILES_STAY if said else None), (system, settings)


def test_a_cell_near_a_bound_carries_its_name() -> None:
    """The bound replaces another limit of the trial; a result below it is left as it was."""
    result = replace(RESULT, estimate_hz=950.0, limited_by="cpu")
    assert with_soft_bounds(result, plan(Bound("network", 1000.0))).limited_by == "network"
    assert with_soft_bounds(result, plan(Bound("network", 2000.0))) == result


def test_a_generators_limit_stays_one_near_a_bound() -> None:
    """The system itself was not at its limit."""
    result = replace(RESULT, status="lower-bound", estimate_hz=950.0, limited_by="generator")
    assert with_soft_bounds(result, plan(Bound("network", 1000.0))) == result


def test_a_cell_keeps_its_soft_bounds_for_the_report() -> None:
    """The hard one is the bound of the result itself."""
    bounds = (Bound("disk", 90.0, hard=False), Bound("cpu", 100.0))
    found = with_soft_bounds(replace(RESULT, estimate_hz=85.0), plan(*bounds))
    assert (found.soft_bounds, found.limited_by) == ((bounds[0],), "disk")


def test_a_result_without_an_estimate_is_near_no_bound() -> None:
    """A failed cell keeps what the search said of it."""
    result = replace(RESULT, status="failed", reason="died", limited_by=None)
    assert finish_result(result, plan(Bound("cpu", 100.0))) == result


def test_an_interval_ends_where_theory_does() -> None:
    """A rate above the bound is possible for the statistics alone; the end is never below the estimate."""
    result = replace(RESULT, estimate_hz=150.0, low_hz=145.0, high_hz=210.0, bound_hz=200.0)
    assert finish_result(result, plan(Bound("cpu", 200.0))) == replace(result, high_hz=200.0)
    above = finish_result(replace(result, estimate_hz=201.0), plan(Bound("cpu", 200.0)))
    assert above.high_hz == 201.0


def test_a_result_above_a_hard_bound_fails_its_cell() -> None:
    """No rate of it is left; two percent are the tolerance."""
    result = replace(
        RESULT, estimate_hz=240.0, low_hz=230.0, high_hz=250.0, confirmed_hz=230.0, bound_hz=200.0, bound="cpu"
    )
    found = finish_result(result, plan(Bound("cpu", 200.0)))
    assert (found.status, found.reason) == (
        "failed",
        "impossible: 230 /s sustained, but theory allows 200 /s (cpu)",
    )
    assert (found.estimate_hz, found.low_hz, found.high_hz, found.confirmed_hz) == (None, None, None, None)
    assert finish_result(replace(result, low_hz=204.0), plan(Bound("cpu", 200.0))).status == "measured"


def test_an_interval_that_reaches_the_generators_limit_is_a_lower_bound() -> None:
    """Nobody could tell whose limit was met; below it the system's was."""
    result = replace(RESULT, estimate_hz=1998.0, low_hz=1924.0, high_hz=2074.0, generator_hz=2000.0)
    found = finish_result(result, plan(Bound("cpu", 10_000.0)))
    assert (found.status, found.reason, found.limited_by) == ("lower-bound", "generator", "generator")
    assert (found.low_hz, found.high_hz) == (1924.0, None)
    assert finish_result(replace(result, generator_hz=2100.0), plan(Bound("cpu", 10_000.0))).status == "measured"
    wide = finish_result(replace(result, estimate_hz=1500.0, low_hz=900.0), plan(Bound("cpu", 10_000.0)))
    assert (wide.status, wide.reason, wide.limited_by, wide.high_hz) == ("lower-bound", "budget", None, None)


def test_a_cell_that_was_not_searched_has_no_rate() -> None:
    """Its result has the cell's point and the reason."""
    mixed = Sizes(choice=((100, 0.9), (10_000, 0.1)))
    cell = replace(SCENARIO.cells()[0], message_bytes=mixed.mean, sizes=mixed)
    found = without_rate(cell, "unsupported", "it cannot")
    assert (found.system, found.message_bytes, found.sizes) == ("python/kafka", mixed.mean, mixed)
    assert (found.status, found.reason, found.estimate_hz, found.trials) == ("unsupported", "it cannot", None, 0)


def test_a_trial_above_the_cpu_bound_is_impossible() -> None:
    """Two cores and 10 ms a message allow 200 messages/s; the error names the trial."""
    check_sanity(replace(TRIAL, cpu_requested_s=10.0), plan())
    with pytest.raises(ImpossibleMeasurementError, match=r"^trial 3: impossible: 300 /s were processed"):
        check_sanity(replace(TRIAL, sent=3000, processed=3000, cpu_requested_s=30.0), plan())


def test_a_link_bounds_a_trial_where_one_host_sends() -> None:
    """Several hosts have several network cards."""
    free = Scenario("x", ("python/kafka",), Grid((MessageSize(1000),)))
    site = Site(bandwidth=Bandwidth(50e3), sections={"kafka": KafkaSite("a:1")})
    with pytest.raises(ImpossibleMeasurementError, match="the link carries"):
        check_sanity(TRIAL, plan(scenario=free, site=site))
    several = replace(site, load=LoadHosts("a:2", 2))
    check_sanity(TRIAL, plan(scenario=free, site=several))


def test_latency_trials_are_at_shares_of_the_confirmed_rate() -> None:
    """They are numbered after the trials that there are; those that the journal has are not made again."""
    scenario = replace(SCENARIO, latency=LatencyTrials((Share(0.5), Share(0.8)), Seconds(20)))
    result = replace(RESULT, confirmed_hz=100.0)
    done, before = (
        replace(TRIAL, planned=replace(TRIAL.planned, rate=rate, purpose="latency")) for rate in (50.2, 45.0)
    )
    assert remaining_latency_trials(plan(scenario=scenario), result, [TRIAL]) == [
        PlannedTrial(1, 50.0, 1.0, 20.0, "latency"),
        PlannedTrial(2, 80.0, 1.0, 20.0, "latency"),
    ]
    assert remaining_latency_trials(plan(scenario=scenario), result, [TRIAL, done]) == [
        PlannedTrial(2, 80.0, 1.0, 20.0, "latency")
    ]
    # 45/s was half of what an earlier visit confirmed
    rates = [trial.rate for trial in remaining_latency_trials(plan(scenario=scenario), result, [before])]
    assert rates == [50.0, 80.0]


def test_there_are_no_latency_trials_without_a_confirmed_rate_or_without_shares() -> None:
    """Nothing could be measured, or nothing was asked for."""
    scenario = replace(SCENARIO, latency=LatencyTrials((Share(0.5),)))
    assert remaining_latency_trials(plan(scenario=scenario), RESULT, []) == []
    assert remaining_latency_trials(plan(), replace(RESULT, confirmed_hz=100.0), []) == []


@pytest.mark.parametrize(
    ("changes", "cost", "words"),
    [
        ({}, 0.01, None),
        ({"unverified": 5}, 0.01, "the bodies of messages"),
        ({"cpu_used_s": None}, 0.01, "the CPU cost of messages"),
        ({"cpu_used_s": None, "unverified": 5}, 0.01, "the bodies and CPU cost of messages"),
        ({"cpu_used_s": None}, 0.0, None),
    ],
    ids=["everything said", "no bodies", "no CPU time", "neither", "no cost"],
)
def test_a_result_says_what_a_program_did_not_report(
    changes: dict[str, float | None], cost: float, words: str | None
) -> None:
    """One trial of several is enough; where messages cost nothing, there is no CPU time to report."""
    scenario = replace(SCENARIO, grid=Grid((MessageSize(1000),), (Seconds(cost),)))
    found = finish_result(RESULT, plan(scenario=scenario), [TRIAL, replace(TRIAL, **changes)])
    assert (found.remark is None) == (words is None)
    assert words is None or words in (found.remark or "")
