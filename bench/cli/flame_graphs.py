"""The flame graphs of `bench explain --profile`."""

from pathlib import Path
from typing import TYPE_CHECKING

from bench.cli.inputs import cache_folder, children_folder, this_command
from bench.cli.output import complain, say
from bench.errors import UsageError

if TYPE_CHECKING:
    from bench.model.cell import Cell


def profile_one(folder: Path, name: str, *, quiet: bool) -> None:
    """Deploy the cell of a run whose name has a part `name` again, sample it, and print its flame graphs.

    Raises:
        UsageError: there is not exactly one such cell, it has no rate, or py-spy is not installed.
        HarnessError: not one process could be sampled.
    """
    from bench.cli.terminal import terminal
    from bench.runner.profile import choose_rate, profile_cell
    from bench.runner.run import RunOptions
    from bench.telemetry.profilers import require_one, require_py_spy

    profiled = choose_rate(folder, _find_cell(folder, name))
    options, py_spy = RunOptions(this_command(), cache_folder(), children_folder()), require_py_spy()
    with terminal(1, folder, quiet=quiet) as notify:
        graphs = profile_cell(folder, profiled, py_spy, notify, options)
    for graph in graphs:
        used = f"{graph.process.cpu_share:.0%} of a core"
        if graph.path is None:
            complain(f"{graph.process.name} ({used}): {graph.problem}")
        else:
            say(f"{graph.path} ({used})")
    require_one(graphs)


def _find_cell(folder: Path, name: str) -> "Cell":
    from bench.storage.run_folder import read_run

    known = read_run(folder).scenario.cells()
    cells = [cell for cell in known if name in cell.name or name in cell.system]
    if len(cells) != 1:
        found = ", ".join(cell.name for cell in cells or known)
        raise UsageError(f"--profile: takes one cell, and {len(cells)} have {name!r} in their names; there are {found}")
    return cells[0]
