"""Trials in this process: what an overloaded one leaves is dropped, and load warms a session, once."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from msgspec.structs import replace as struct_replace

from bench.analysis.verdict import judge
from bench.config.scenario import Bursts
from bench.config.site import Site
from bench.config.validation import apply_changes, parse_scenario
from bench.config.yaml_document import read_document
from bench.model.measurement import Measurement, PlannedTrial
from bench.plugins.environment import RunEnvironment
from bench.plugins.plugin import FrameworkCapabilities
from bench.runner.cell_plan import CellPlan, plan_cell
from bench.runner.deployment import Deployment, deployed
from bench.runner.progress import TrialStarted
from bench.runner.trial import run_trial
from bench.runner.warm_up import STEP_BATCHES, STEP_S, warm_up_session
from bench.search.parameters import SearchParameters
from bench.system.supervisor import Supervisor
from bench.units import Seconds, Share

CHANGES = ("grid.message_size=100 B", "settings.capacity.ceiling=400/s")


@pytest.fixture
def plan(request: pytest.FixtureRequest) -> CellPlan:
    """The plan of a cell whose framework processes 400 messages/s in this process."""
    document = read_document(request.config.rootpath / "scenarios" / "smoke.yaml")
    scenario = parse_scenario(apply_changes(document, [*CHANGES]))
    return plan_cell(scenario.cells()[0], scenario, Site(), 1)


@pytest.fixture
def env(tmp_path) -> Iterator[RunEnvironment]:
    supervisor = Supervisor(tmp_path / "children", tmp_path / "logs")
    with RunEnvironment(Site(), supervisor, tmp_path / "data", tmp_path / "cache", cores=1) as env:
        yield env


@pytest.fixture
def deployment(plan, env) -> Iterator[Deployment]:
    with deployed(plan, env) as deployment:
        yield deployment


def measured(deployment: Deployment, rate: float, window: float) -> Measurement:
    """Run a trial and make its deployment ready for the next one."""
    measurement = run_trial(deployment, PlannedTrial(0, rate, 0.2, window, "search"), lambda _: None)
    deployment.make_ready(measurement)
    return measurement


def test_what_an_overloaded_trial_left_is_dropped(deployment):
    """At ten times the capacity the trial neither drains nor loses; the next trial finds nothing of it."""
    seen = measured(deployment, 4000.0, 3.0)
    assert seen.ended == "hopeless"
    assert (seen.drained, seen.purged) == (False, True)
    assert seen.processed < seen.sent
    assert not seen.deployment_reusable
    assert seen.offered_s == pytest.approx(seen.offered / 4000.0, abs=0.001)
    after = measured(deployment, 100.0, 0.5)
    assert after.drained
    assert (after.processed, after.lost, after.duplicated) == (after.sent, 0, 0)


def test_a_drain_that_is_of_no_use_is_not_waited_for(deployment):
    """A new deployment would take ten minutes, and the backlog 20 s; but the search has no time for another trial."""
    deployment.redeploy_s = 600.0
    seen = run_trial(deployment, PlannedTrial(0, 4000.0, 0.2, 3.0, "search"), lambda _: None, time_left=3.0)
    assert (seen.ended, seen.drained, seen.purged) == ("hopeless", False, True)


def test_a_burst_that_is_worked_off_before_the_next_is_no_overload(plan, env):
    """700/s for half of the time are more than the framework processes, but their mean is less."""
    load = struct_replace(plan.scenario.load, arrivals="bursts", bursts=Bursts(Seconds(6), Share(0.5)))
    with deployed(replace(plan, scenario=struct_replace(plan.scenario, load=load)), env) as deployment:
        seen = measured(deployment, 350.0, 5.8)
    assert seen.ended == "complete"
    assert judge(seen, plan.rules).word != "overloaded"  # beside other work the generator may be late
    assert (seen.drained, seen.purged, seen.lost, seen.duplicated) == (True, False, 0, 0)
    assert seen.window_s == pytest.approx(5.8)


def test_the_seconds_of_a_load_are_those_of_its_schedule(deployment):
    """A load that follows a profile offers fewer messages in its first half than the mean rate says."""
    stopped = struct_replace(measured(deployment, 100.0, 0.3), offered=10, sent=5, load_s=0.4)
    assert (stopped.offered_s, stopped.sent_s, stopped.window_s) == pytest.approx((0.4, 0.2, 0.2))
    earlier = struct_replace(stopped, load_s=None)
    assert (earlier.offered_s, earlier.sent_s, earlier.window_s) == (0.1, 0.05, 0.0)


def test_what_could_be_sustained_is_waited_for(deployment):
    """Its counts are exact, so that a loss would show."""
    seen = measured(deployment, 300.0, 0.5)
    assert (seen.drained, seen.purged) == (True, False)
    assert seen.processed == seen.sent


def test_a_measurement_says_for_how_long_the_session_was_under_load(deployment):
    """Settling and window of the trials before count; a new deployment of processes of its own is cold again."""
    first, second = measured(deployment, 100.0, 0.3), measured(deployment, 100.0, 0.3)
    assert first.warm_s == 0.0
    assert (first.load_s or 0.0) - 1e-6 <= (second.warm_s or 0.0) <= first.seconds  # a busy machine takes longer
    deployment.redeploy()
    assert measured(deployment, 100.0, 0.3).warm_s == 0.0


def test_a_new_session_is_warmed_up_once(plan, env):
    """It is loaded for as long as its plugin asks for, and shows what it keeps up with; what is warm is left alone."""
    slow = replace(plan.framework, capabilities=FrameworkCapabilities(in_process=True, warm_up_s=STEP_S / 2))
    slow_plan = replace(plan, framework=slow)
    events: list[object] = []
    with deployed(slow_plan, env) as deployment:
        kept = warm_up_session(deployment, events.append)
        assert deployment.is_warm
        assert kept is not None
        assert 50 < kept < 500
        heard = len(events)
        warm_up_session(deployment, events.append)
        assert heard == len(events) > 0
        assert measured(deployment, 100.0, 0.3).drained


def test_a_step_of_a_warm_up_is_long_enough_to_tell(plan, env):
    """Its window holds six batches of 1 s: else no step would be sustained, and the rate would fall."""
    slow = replace(plan.framework, capabilities=FrameworkCapabilities(in_process=True, warm_up_s=STEP_BATCHES))
    started: list[PlannedTrial] = []
    with deployed(replace(plan, framework=slow, batch_interval=1.0), env) as deployment:
        warm_up_session(
            deployment, lambda event: started.append(event.planned) if isinstance(event, TrialStarted) else None
        )
    assert started[0].window == pytest.approx(SearchParameters().window_batches)


def test_a_scenario_may_ask_for_another_warm_up(plan, request):
    """The scenario's time holds for a framework that becomes faster, and for no other."""
    document = read_document(request.config.rootpath / "scenarios" / "smoke.yaml")
    asked = replace(plan, scenario=parse_scenario(apply_changes(document, [*CHANGES, "timing.warm_up=90 s"])))
    slow = replace(plan.framework, capabilities=FrameworkCapabilities(warm_up_s=20.0))
    assert asked.warm_up_s == 0.0
    assert (replace(plan, framework=slow).warm_up_s, replace(asked, framework=slow).warm_up_s) == (20.0, 90.0)


def test_a_framework_that_needs_no_warm_up_gets_none(deployment):
    """Nothing is sent for it."""
    events: list[object] = []
    warm_up_session(deployment, events.append)
    assert events == []


@pytest.mark.parametrize("traced", [True, False])
def test_a_trial_keeps_a_trace_where_the_scenario_asks_for_it(plan, env, traced):
    """Its spans begin with the trial, and the load generator is sampled."""
    scenario = struct_replace(plan.scenario, trace=traced)
    with deployed(replace(plan, scenario=scenario), env) as deployment:
        trace = measured(deployment, 100.0, 0.5).trace
    assert bool(trace.spans) == bool(trace.samples) == traced
    assert all(0 <= span.begin <= span.end for span in trace.spans)
