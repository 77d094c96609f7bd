"""The search of a cell begins where the warm-up of its framework shows the capacity, where no other cell shows it."""

import contextlib
from dataclasses import replace

import pytest
from simulated_runs import SCENARIO, SimulatedBackend

from bench.config.site import Site
from bench.plugins.environment import RunEnvironment
from bench.plugins.plugin import FrameworkCapabilities
from bench.runner.cell_plan import plan_cell
from bench.runner.cell_search import Allowance, CellSearch
from bench.storage.run_folder import RunFolder
from bench.system.supervisor import Supervisor


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
