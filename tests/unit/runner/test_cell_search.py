"""The search of a cell begins where the warm-up of its framework shows the capacity, where no other cell shows it."""

import contextlib
from dataclasses import replace

import msgspec
import pytest
from simulated_runs import SCENARIO, SimulatedBackend, make_simulated_run

from bench.config.scenario import Grid, LatencyTrials
from bench.config.site import Site
from bench.errors import PluginError
from bench.model.message_sizes import MessageSize
from bench.plugins.environment import RunEnvironment
from bench.plugins.plugin import FrameworkCapabilities
from bench.runner.cell_plan import plan_cell
from bench.runner.cell_search import Allowance, CellSearch
from bench.runner.verification import verify_run
from bench.storage.run_folder import RunFolder, read_results, read_trials, read_visits
from bench.system.supervisor import Supervisor
from bench.units import Seconds, Share


@pytest.mark.parametrize(("warm_up_s", "warm_hz"), [(0.0, None), (2.0, 400.0), (2.0, None)])
def test_a_warm_up_tells_the_search_where_to_begin(warm_up_s, warm_hz, tmp_path):
    """The estimate is stored with the inputs of the result; there is none where the warm-up shows nothing."""
    plan = plan_cell(SCENARIO.cells()[0], SCENARIO, Site(), 1)
    warming = FrameworkCapabilities(in_process=True, warm_up_s=warm_up_s)
    plan = replace(plan, framework=replace(plan.framework, capabilities=warming))
    supervisor = Supervisor(tmp_path / "children", tmp_path / "logs")
    with (
        RunEnvironment(Site(), supervisor, tmp_path / "data", tmp_path / "cache", cores=1) as env,
        contextlib.closing(RunFolder.create(tmp_path, "search")) as folder,
    ):
        folder.open(SCENARIO, Site(), {})
        search = CellSearch(plan, env, folder, lambda _: None, allowance=Allowance(budget=60.0))
        answer = search.answer(SimulatedBackend(warm_hz=warm_hz))
        inputs, trials = folder.inputs(plan.cell), folder.trials(plan.cell)
    assert inputs is not None
    assert inputs.hint_hz == answer.hint_hz == warm_hz
    assert inputs.cold == (warm_up_s > 0)
    assert (trials[0].planned.rate == warm_hz) is (warm_hz is not None)


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


def test_an_error_in_a_visit_does_not_lose_what_its_trials_showed(tmp_path):
    """The answer is theirs, and further visits are wanted; verification computes it again."""
    count = 0

    def fail_later(measurement):
        nonlocal count
        count += 1
        if count > 5:
            raise PluginError("spark", "open", "nothing was processed within 90 s")
        return measurement

    scenario = msgspec.structs.replace(SCENARIO, systems=("spark/kafka",), grid=Grid((MessageSize(100),)))
    run = make_simulated_run(tmp_path / "run", scenario, change=fail_later)
    (result,) = read_results(run)
    assert (result.status, result.trials) == ("measured", 5)
    assert not read_visits(run)[-1].finished
    assert verify_run(run).differences == ()
