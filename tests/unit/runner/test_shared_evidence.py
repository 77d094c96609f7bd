"""At the end of a run, every result is computed with what all cells have shown."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from simulated_runs import SCENARIO, make_simulated_run

from bench.config.site import Site
from bench.runner.cell_plan import plan_cell
from bench.runner.shared_evidence import update_results
from bench.runner.verification import verify_run
from bench.storage.run_folder import RunFolder, read_results

SYSTEM = replace(SCENARIO, systems=("python/kafka",))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_simulated_run(tmp_path_factory.mktemp("shared") / "run", SYSTEM)


def test_the_first_cells_know_what_the_last_ones_showed(folder: Path) -> None:
    """When the first one was searched, no other cell had shown its noise."""
    store = RunFolder(folder)
    store.open(SYSTEM, Site(), {})
    inputs = [store.inputs(result.cell) for result in store.results() if result.status == "measured"]
    store.close()
    assert len(inputs) > 1
    assert all(each is not None and each.noise for each in inputs)


def test_results_follow_from_their_trials_afterwards(folder: Path) -> None:
    """`bench verify` computes them again; nothing is measured."""
    before = read_results(folder)
    store = RunFolder(folder)
    store.open(SYSTEM, Site(), {})
    for result in store.results():
        inputs = store.inputs(result.cell)
        assert inputs is not None
        store.set_inputs(result.cell, replace(inputs, noise=()))
    plans = {cell: plan_cell(cell, SYSTEM, Site(), 2) for cell in SYSTEM.cells()}
    changed = update_results(store, plans)
    store.close()
    assert changed == [result.cell for result in before if result.status == "measured"]
    assert [result.trials for result in read_results(folder)] == [result.trials for result in before]
    assert verify_run(folder).differences == ()
