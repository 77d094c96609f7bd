"""Simulated systems have their specified capacity, and the acceptance criteria tell a good search from a bad one."""

import math
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bench.cli.validation_table import failure_text, print_report
from bench.model.measurement import PlannedTrial
from bench.search.bisection import Bisection
from bench.search.map_budget import interval_width
from bench.search.two_counter import TwoCounter
from bench.simulation.acceptance import (
    Criterion,
    adversary_criteria,
    map_criteria,
    max_share,
    min_share,
    scenario_criteria,
    summarise,
)
from bench.simulation.capacity import TICK_S, Capacity, Traits
from bench.simulation.cases import ADVERSARIES, SCENARIOS
from bench.simulation.driver import contains, run_search
from bench.simulation.engines import ENGINE_CASES
from bench.simulation.faults import Faults
from bench.simulation.fluid import Fluid
from bench.simulation.map_measurement import measure_each, measure_in_passes
from bench.simulation.maps import COSTS, MAPS, SIZES, MapOutcome, draw_systems, run_map
from bench.simulation.micro_batches import MicroBatches
from bench.simulation.mutations import MUTATIONS, failed_criteria
from bench.simulation.validation_report import Seeds, build_report, list_tasks, run_task

CALM = Traits(1000.0, noise=0.0, pause_gap=0.0, warm_up=0.0)


def trial(rate, traits=CALM, window=20.0, **faults):
    return Fluid(traits, Faults(**faults), 1).run_trial(PlannedTrial(0, rate, 1.0, window, "search"), 30.0)


# --- the simulated systems


def test_the_mean_capacity_is_the_truth():
    """The mean over time, with noise and pauses, is the true capacity."""
    traits = Traits(1000.0, warm_up=0.0)
    assert np.mean(Capacity(traits, 1).rates(0, 300_000, 0)) == pytest.approx(traits.truth, rel=0.005)


def test_noise_lasts_for_seconds():
    """The noise is a first-order process with correlation 0.8 and a standard deviation of 4 %."""
    seconds = Capacity(replace(CALM, noise=0.04), 1).rates(0, 200_000, 0)[::10] / 1000 - 1
    assert np.std(seconds) == pytest.approx(0.04, rel=0.05)
    assert np.corrcoef(seconds[:-1], seconds[1:])[0, 1] == pytest.approx(0.8, abs=0.03)


def test_a_cold_system_is_slower():
    """The capacity is 0.6 of its mean at first, and all of it after 20 s."""
    rates = Capacity(replace(CALM, warm_up=20.0), 1).rates(0, 400, 0)
    assert rates[0] == pytest.approx(600)
    assert rates[200] == pytest.approx(1000)


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), rate=st.floats(1.0, 3000.0), loss=st.sampled_from([0.0, 0.3]))
def test_the_queue_is_that_of_the_recursion(seed, rate, loss):
    """The vectorised pass gives the same queue as a loop over the ticks."""
    traits = Traits(1000.0, collapse_loss=loss)
    system = Fluid(traits, Faults(), seed)
    flow, queue = system._flow(rate, 600, 0.0), 0.0
    capacity = Capacity(traits, seed).rates(0, 600, 0)
    for tick in range(600):
        slow = 1 - loss * (queue > traits.collapse_after * traits.mean_capacity)
        queue = max(0.0, queue + (rate - capacity[tick] * slow) * TICK_S)
        assert flow.queue[tick] == pytest.approx(queue, rel=1e-6, abs=1e-6)


def test_a_trial_below_the_capacity_drains_and_counts_every_message():
    """Offered, sent and processed messages are equal at its end."""
    measurement = trial(900.0)
    assert (measurement.ended, measurement.drained, measurement.lost) == ("complete", True, 0)
    assert measurement.processed == measurement.sent == measurement.offered == 900 * 21


def test_a_batch_shows_once_it_is_complete():
    """The processed counter moves once a batch interval."""
    measurement = trial(900.0, replace(CALM, batch_interval=5.0))
    moves = np.array(measurement.series.at[1:])[np.diff(measurement.series.processed) > 0]
    assert np.diff(moves) == pytest.approx(5.0)


def test_a_hopeless_trial_is_given_up():
    """The load ends early, as in the harness, and the sent messages are still drained."""
    measurement = trial(4000.0)
    assert (measurement.ended, measurement.drained) == ("hopeless", True)
    assert measurement.offered < 4000 * 5


def test_a_queue_that_is_too_long_is_not_drained():
    """The deadline ends the drain, and the rest is lost."""
    measurement = trial(1300.0, window=300.0)
    assert not measurement.drained
    assert measurement.lost > 0


@pytest.mark.parametrize(
    ("faults", "word"),
    [({"dies_above": 500.0}, "framework died"), ({"dies_at": 3.0}, "framework died"), ({}, "complete")],
    ids=["above a rate", "at a time", "not at all"],
)
def test_a_system_dies_when_its_faults_say_so(faults, word):
    """The framework dies above a rate or at a time, and otherwise not."""
    assert trial(900.0, **faults).ended == word


def test_a_limited_generator_is_late():
    """A generator that reaches half of the rate is late by half of the time."""
    measurement = trial(900.0, replace(CALM, generator=450.0))
    assert measurement.late == pytest.approx(measurement.offered / 900 / 2, rel=0.01)


PULL = replace(CALM, batch_interval=1.0, reader="pull", fixed_cost=0.4)


def batches_at(share, traits):
    """Return the batches of a trial of 30 s at that share of the truth."""
    return MicroBatches(traits, 1).run_trial(PlannedTrial(0, share * traits.truth, 1.0, 30.0, "search"), 60.0).batches


def test_batches_take_their_interval_at_the_truth():
    """Fixed cost and messages of one interval take just that long, for both readers."""
    for reader in ("pull", "receiver"):
        batches = batches_at(1.0, replace(PULL, reader=reader))
        assert batches.end[10] - batches.begin[10] == pytest.approx(1.0, abs=0.01)


def test_a_late_pull_engine_takes_larger_batches():
    """Its next batch has everything that waits, so that it finds an equilibrium beyond the interval."""
    batches = batches_at(1.2, PULL)
    assert batches.messages[15] > 1.3 * 1.2 * PULL.truth
    assert batches.end[20] - batches.begin[20] == pytest.approx(batches.end[15] - batches.begin[15], rel=0.05)


def test_a_late_receiver_queues_its_batches():
    """Batches keep the messages of an interval, and wait for each other."""
    traits = replace(PULL, reader="receiver")
    batches = batches_at(1.2, traits)
    assert batches.messages[15] == pytest.approx(1.2 * traits.truth, abs=1)
    assert batches.begin[16] == pytest.approx(batches.end[15])


def test_a_poisson_load_has_random_arrivals():
    """The offered counter scatters around the rate."""
    offered = np.diff(trial(50.0, replace(CALM, poisson=True), window=200.0).series.offered)
    assert np.std(offered) > 1.5


def test_the_load_may_cost_the_system_capacity():
    """With 0.3 of each message's work on the same cores the truth is 1000 / 1.3."""
    traits = replace(CALM, shared=0.3)
    assert traits.truth == pytest.approx(1000 / 1.3)
    assert trial(1.1 * traits.truth, traits).processed == trial(1.1 * traits.truth, traits).sent
    assert not trial(0.98 * traits.truth, traits).lost


def test_a_trial_knows_the_systems_age():
    """The seconds of load before it; a restart makes the system young again."""
    system = Fluid(CALM, Faults(), 1)
    plan = PlannedTrial(0, 500.0, 1.0, 9.0, "search")
    first, second = system.run_trial(plan, 30.0), system.run_trial(plan, 30.0)
    system.restart()
    assert (first.warm_s, system.run_trial(plan, 30.0).warm_s) == (0.0, 0.0)
    assert second.warm_s == pytest.approx(first.seconds)


def test_a_strategy_that_needs_no_series_runs_as_well():
    """The bisection measures a system without noise."""
    outcome = run_search(replace(SCENARIOS[0], traits=replace(CALM, warm_up=0.0)), 0, Bisection)
    assert outcome.ended
    assert outcome.result.status == "measured"


# --- the acceptance criteria


@pytest.mark.parametrize("latency", [1.0, 2.0])
def test_a_long_latency_is_no_overload(latency):
    """Its messages wait, and are rate x latency; the interval holds the capacity as it does without."""
    case = replace(SCENARIOS[0], traits=Traits(1000.0, latency=latency, warm_up=0.0), budget=75.0)
    results = [run_search(case, seed, TwoCounter).result for seed in range(6)]
    assert all(result.status == "measured" for result in results)
    assert sum(result.low_hz <= 1000 <= result.high_hz for result in results) >= 5
    assert all(result.low_hz > 800 for result in results)


@pytest.mark.parametrize("case", SCENARIOS, ids=lambda case: case.name)
def test_a_scenario_is_measured_within_its_bounds(case):
    """A few seeds of each scenario are measured; `bench certify` runs more."""
    outcomes = [run_search(case, seed, TwoCounter) for seed in range(6)]
    assert all(outcome.result.status == "measured" and outcome.seconds <= outcome.budget for outcome in outcomes)
    assert abs(np.median([outcome.error for outcome in outcomes])) < 0.04
    assert sum(outcome.covered for outcome in outcomes) >= 4


@pytest.mark.parametrize("case", [case for case in ENGINE_CASES if case.budget == 25.0], ids=lambda case: case.name)
def test_an_engine_in_25_seconds_has_an_interval_that_holds_the_truth(case):
    """The interval of every engine does so in at least 6 of 8 runs."""
    outcomes = [run_search(case.draw_case(seed), seed, TwoCounter) for seed in range(8)]
    assert sum(outcome.covered for outcome in outcomes) >= 6


def test_half_of_the_cases_have_a_hint():
    """The other half has none; each seed draws its capacity."""
    cases = [ENGINE_CASES[0].draw_case(seed) for seed in range(10)]
    assert [case.hint is None for case in cases] == [True, False] * 5
    assert len({case.traits.mean_capacity for case in cases}) == 10


def test_a_map_has_24_cells_on_a_surface():
    """Larger and more costly messages are processed less often, but for the scatter."""
    systems = draw_systems(MAPS[0], 1)
    assert len(systems) == len(MAPS[0].engines) * len(SIZES) * len(COSTS) == 24
    truths = [
        [traits.truth for cell, traits in systems.items() if cell.cpu_seconds == cost] for cost in (COSTS[0], COSTS[-1])
    ]
    assert np.mean(truths[0]) > np.mean(truths[1])


def test_a_map_that_is_measured_twice_shows_no_change():
    """Both measure the systems of one seed; near cells are ordered right or called open."""
    outcome = run_map(MAPS[0], 0, TwoCounter)
    assert (outcome.changes, outcome.misordered) == (0, 0)
    assert outcome.covered >= 0.85 * 2 * outcome.cells


def test_passes_over_a_map_use_its_total_where_it_changes_most():
    """Every cell has a result that holds the truth, mostly; cells that are narrow enough leave their time to others."""
    systems = draw_systems(MAPS[0], 0)
    each, passes = measure_each(systems, 25.0, 1, TwoCounter), measure_in_passes(systems, 24 * 25.0, 1, TwoCounter)
    assert each.keys() == passes.keys() == systems.keys()
    assert sum(contains(result, systems[cell].truth) for cell, result in passes.items()) >= 20
    wide = [
        sum((interval_width(result) or math.inf) > 0.4 for result in results.values()) for results in (each, passes)
    ]
    assert wide[1] < wide[0]


def test_maps_that_show_changes_fail_a_criterion():
    """Four maps of ten are more than one of twenty."""
    maps = [MapOutcome(index % 5 < 2, 24, 48, 10, 0) for index in range(40)]
    assert [criterion.name for criterion in map_criteria("map", maps) if not criterion.passed] == [
        "equal maps that show a change"
    ]


def test_a_share_of_few_runs_may_be_below_its_limit_by_chance():
    """A share of 0.93 may be 66 of 80 runs and must be 1,833 of 2,000; the mirrored share is the largest one."""
    assert min_share(80, 0.93) == pytest.approx(66 / 80)
    assert min_share(2000, 0.93, 0.01) == pytest.approx(1833 / 2000)
    assert max_share(40, 0.05, 0.01) == pytest.approx(6 / 40)


@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda adversary: adversary.case.name)
def test_an_adversary_does_not_mislead_the_search(adversary):
    """The result has the correct status, and the budget is kept."""
    outcomes = [run_search(adversary.case, seed, TwoCounter) for seed in range(4)]
    assert [
        failure_text(criterion) for criterion in adversary_criteria(adversary, outcomes) if not criterion.passed
    ] == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_fails_a_criterion(mutation):
    """A deliberate mistake in the search fails at least one criterion."""
    assert failed_criteria(mutation, range(24))


def test_the_same_seed_gives_the_same_outcome():
    """Two runs of one seed are equal to the last digit."""
    first, second = (run_search(SCENARIOS[6], 7, TwoCounter) for _ in range(2))
    assert first == second


def test_a_report_has_every_case_in_its_table(capsys):
    """The table has a line for each scenario, engine and adversary, whatever the searches found."""
    seeds = Seeds(scenario=1, engine=1, adversary=1)
    tasks = [task for task in list_tasks(seeds, mutations=False) if task.kind != "map"]
    outcomes = cycle([*first_outcomes(tasks), run_search(replace(SCENARIOS[0], budget=0.5), 0, TwoCounter)])
    own = [*SCENARIOS, *SCENARIOS, *ENGINE_CASES, *(adversary.case for adversary in ADVERSARIES)]
    named = [replace(next(outcomes), case=case.name, budget=case.budget) for case in own]
    answers = [(task, [outcome] * task.count) for task, outcome in zip(tasks, named, strict=True)]
    report = build_report("two-counter", seeds, answers)
    cases = [case for case in report.cases if case.summary]
    assert len(cases) == len(SCENARIOS) + len(ENGINE_CASES) + len(ADVERSARIES)
    print_report(report, width=300)
    shown = capsys.readouterr().out
    assert all(case.name in shown for case in cases)
    assert f"of {len(report.criteria)} criteria passed" in shown


def first_outcomes(tasks):
    """Run the first scenario, engine and adversary; return an outcome of each, which has the name of its case."""
    first = {task.kind: task for task in reversed(tasks)}
    outcomes = [run_task(first[kind], TwoCounter)[0] for kind in ("scenario", "engine", "adversary")]
    assert [one.case for one in outcomes] == [SCENARIOS[0].name, ENGINE_CASES[0].name, ADVERSARIES[0].case.name]
    return outcomes


def test_the_order_of_the_answers_does_not_matter():
    """Tasks may end in any order."""
    seeds = Seeds(scenario=3, first=5)
    done_tasks = [
        (task, run_task(task, TwoCounter)) for task in list_tasks(seeds, only="S4", max_runs=1, mutations=False)
    ]
    assert build_report("x", seeds, done_tasks) == build_report("x", seeds, reversed(done_tasks))


def test_only_the_requested_cases_are_run():
    """The cases are requested by a part of their names."""
    assert {task.kind for task in list_tasks(Seeds(), only="counter stalls")} == {"adversary"}
    assert list_tasks(Seeds(), only="no such case") == []


def test_a_failed_criterion_has_its_value_and_limit():
    """The line of a failed criterion has both figures."""
    criteria = [Criterion("S1", "coverage", 0.5, 0.9, at_least=True), Criterion("S1", "median error", 0.01, 0.015)]
    assert [failure_text(criterion) for criterion in criteria if not criterion.passed] == [
        "S1: coverage 0.5, required >= 0.9"
    ]


def test_a_search_without_a_result_fails_its_criteria():
    """A missing estimate fails a criterion."""
    outcome = run_search(replace(SCENARIOS[0], budget=0.5), 0, TwoCounter)
    summary = summarise([outcome])
    assert summary.error is None
    assert "no estimate" in [criterion.name for criterion in scenario_criteria(summary) if not criterion.passed]
