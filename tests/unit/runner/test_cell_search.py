"""The search of a cell begins where the warm-up of its framework shows the capacity, where no other cell shows it."""

import contextlib
from dataclasses import replace

import pytest

from bench.config.site import Site
from bench.config.validation import apply_changes, parse_scenario
from bench.config.yaml_document import read_document
from bench.plugins.environment import RunEnvironment
from bench.plugins.plugin import FrameworkCapabilities
from bench.runner.backend import PluginBackend
from bench.runner.cell_plan import plan_cell
from bench.runner.cell_search import Allowance, CellSearch
from bench.runner.warm_up import STEP_S
from bench.storage.run_folder import RunFolder
from bench.system.supervisor import Supervisor

CHANGES = ("grid.message_size=100 B", "settings.capacity.ceiling=400/s", "search.start=300/s")


@pytest.mark.parametrize("warm_up_s", [0.0, STEP_S / 2])
def test_a_warm_up_tells_the_search_where_to_begin(warm_up_s, request, tmp_path):
    """The estimate is stored with the inputs of the result; without a warm-up there is none."""
    document = read_document(request.config.rootpath / "scenarios" / "smoke.yaml")
    scenario = parse_scenario(apply_changes(document, [*CHANGES]))
    plan = plan_cell(scenario.cells()[0], scenario, Site(), 1)
    warming = FrameworkCapabilities(in_process=True, warm_up_s=warm_up_s)
    plan = replace(plan, framework=replace(plan.framework, capabilities=warming))
    supervisor = Supervisor(tmp_path / "children", tmp_path / "logs")
    with (
        RunEnvironment(Site(), supervisor, tmp_path / "data", tmp_path / "cache", cores=1) as env,
        contextlib.closing(RunFolder.create(tmp_path, "search")) as folder,
    ):
        folder.open(scenario, Site(), {})
        backend = PluginBackend(folder.folder)
        answer = CellSearch(plan, env, folder, lambda _: None, allowance=Allowance(budget=3.0)).answer(backend)
        inputs, trials = folder.inputs(plan.cell), folder.trials(plan.cell)
    assert inputs is not None
    assert inputs.hint_hz == answer.hint_hz
    assert inputs.cold == (warm_up_s > 0)
    assert (answer.hint_hz is not None) == (warm_up_s > 0)
    assert answer.hint_hz in (None, trials[0].planned.rate)
