"""The search of a cell begins where the warm-up of its framework shows the capacity, where no other cell shows it."""

import contextlib
from dataclasses import replace

import msgspec
import pytest
from simulated_runs import SCENARIO, SimulatedBackend, SimulatedCell, make_simulated_run

from bench.config.scenario import Grid, LatencyTrials
from bench.config.site import Site
from bench.model.message_sizes import MessageSize
from bench.plugins.environment import RunEnvironment
from bench.plugins.plugin import FrameworkCapabilities
from bench.runner.cell_plan import plan_cell
from bench.runner.cell_search import Allowance, CellSearch
from bench.storage.run_folder import RunFolder, read_trials
from bench.system.supervisor import Supervisor
from bench.units import Seconds, Share


@pytest.fixture
def open_search(tmp_path):
    """Opens the search of a plan's cell with a budget in seconds; returns it with its folder."""
    with contextlib.ExitStack() as stack:

        def opened(plan, budget=60.0):
            supervisor = Supervisor(tmp_path / "children", tmp_path / "logs")
            env = RunEnvironment(Site(), supervisor, tmp_path / "data", tmp_path / "cache", cores=1)
            folder = stack.enter_context(contextlib.closing(RunFolder.create(tmp_path, "search")))
            folder.open(plan.scenario, Site(), {})
            allowance = Allowance(budget=budget)
            return CellSearch(plan, stack.enter_context(env), folder, lambda _: None, allowance=allowance), folder

        yield opened


@pytest.mark.parametrize(("warm_up_s", "warm_hz"), [(0.0, None), (2.0, 400.0), (2.0, None), (None, None)])
def test_a_warm_up_tells_the_search_where_to_begin(warm_up_s, warm_hz, open_search):
    """The estimate is stored with the inputs of the result; there is none where the warm-up shows nothing."""
    plan = plan_cell(SCENARIO.cells()[0], SCENARIO, Site(), 1)
    warming = FrameworkCapabilities(in_process=True, warm_up_s=warm_up_s)
    search, folder = open_search(replace(plan, framework=replace(plan.framework, capabilities=warming)))
    answer = search.answer(SimulatedBackend(warm_hz=warm_hz))
    inputs, trials = folder.inputs(plan.cell), folder.trials(plan.cell)
    assert inputs is not None
    assert inputs.hint_hz == answer.hint_hz == warm_hz
    assert inputs.cold == (warm_up_s != 0)  # a plugin that does not say may have a JVM
    assert (trials[0].planned.rate == warm_hz) is (warm_hz is not None)


@pytest.mark.parametrize(("warm_up_s", "warm_ups"), [(None, 1), (0.0, 0)], ids=["not known", "at full speed"])
def test_a_later_visit_warms_up_new_processes_of_unknown_speed(warm_up_s, warm_ups, open_search, monkeypatch):
    """With one trial, which is not stored; not those of which the plugin says that they are at full speed."""
    monkeypatch.setattr(SimulatedCell, "is_new", True)
    plan, backend = plan_cell(SCENARIO.cells()[0], SCENARIO, Site(), 1), SimulatedBackend()
    capabilities = FrameworkCapabilities(in_process=True, warm_up_s=warm_up_s)
    plan = replace(plan, framework=replace(plan.framework, capabilities=capabilities))
    search, folder = open_search(plan, 10.0)
    search.answer(backend)
    first = len(folder.trials(plan.cell))
    later = Allowance(budget=60.0, first=False)
    CellSearch(plan, search._env, folder, lambda _: None, allowance=later).answer(backend)
    assert len(folder.trials(plan.cell)) > first > 0
    assert len(backend.times_left) == len(folder.trials(plan.cell)) + warm_ups


def test_a_trial_is_told_what_is_left_of_the_budget(open_search):
    """Of an overloaded one nothing is waited for after that: the deployment ends then, in any case."""
    plan, backend = plan_cell(SCENARIO.cells()[0], SCENARIO, Site(), 1), SimulatedBackend()
    search, folder = open_search(plan)
    search.answer(backend)
    trials = folder.trials(plan.cell)
    spent = [sum(trial.seconds for trial in trials[:number]) for number in range(len(trials))]
    assert backend.times_left == pytest.approx([60.0 - seconds for seconds in spent])


@pytest.mark.parametrize(("arrivals", "period"), [("steps", 6.0), ("bursts", 1.0)])
def test_each_trial_has_whole_periods_of_its_load(arrivals, period, tmp_path):
    """The rate of a trial is the mean over a period: of a part of one, another rate would be offered."""
    latency = LatencyTrials((Share(0.5),), Seconds(5))
    load = msgspec.structs.replace(SCENARIO.load, arrivals=arrivals)
    scenario = msgspec.structs.replace(
        SCENARIO, systems=("python/kafka",), grid=Grid((MessageSize(100),)), load=load, latency=latency
    )
    trials = [one.measurement.planned for one in read_trials(make_simulated_run(tmp_path / "run", scenario))]
    assert {"search", "latency"} <= {planned.purpose for planned in trials}
    lengths = [(planned.settle + planned.window) / period for planned in trials]
    assert lengths == pytest.approx([round(length) for length in lengths])
