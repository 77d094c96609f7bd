"""Results computed again with what all cells of a map have shown since they were measured."""

from collections.abc import Mapping

from msgspec.structs import replace

from bench.model.cell import Cell
from bench.runner.cell_plan import CellPlan
from bench.runner.replay import recompute_result
from bench.search.priors import fixed_share_of, noise_of, takes_evidence_of_others, warm_ups_of
from bench.storage.run_folder import RunFolder


def update_results(folder: RunFolder, plans: Mapping[Cell, CellPlan]) -> list[Cell]:
    """Compute results again with the noise, fixed cost of batches and warm-up that other cells show.

    Those that are measured, and bounds that were an interval before the generator's limit cut it. No trial is made.
    Inputs and result of a cell are stored together, so that the result follows from the journal.

    Args:
        folder: of the run, open.
        plans: of its cells.

    Returns:
        The cells whose inputs have changed: their intervals may be wider than before, or narrower.
    """
    changed = []
    for result in folder.results():
        cell, inputs = result.cell, folder.inputs(result.cell)
        if inputs is None or not takes_evidence_of_others(result):
            continue
        others = folder.results()
        shared = replace(
            inputs,
            noise=noise_of(cell, others),
            fixed_share=fixed_share_of(cell, others),
            warm_ups=warm_ups_of(cell, others) if inputs.cold else (),
        )
        if shared != inputs:
            folder.set_inputs(cell, shared)
            trials = folder.trials(cell)
            folder.save_result(cell, recompute_result(plans[cell], shared, trials))
            changed.append(cell)
    return changed
