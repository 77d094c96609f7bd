"""`bench explain`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.inputs import RunArgument
from bench.cli.output import complain, say
from bench.errors import UsageError

if TYPE_CHECKING:
    from bench.model.cell import Cell
    from bench.runner.explanation import TracedTrial


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench explain results/quick-20261121T120000Z 10kB")(explain)


def explain(
    folder: RunArgument,
    name: Annotated[
        str, typer.Argument(metavar="CELL", help="A part of the names of the cells; all cells when left out.")
    ] = "",
    *,
    trial: Annotated[
        int | None,
        typer.Option("--trial", metavar="N", help="The number of a trial; without it, the one that shows the limit."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    perfetto: Annotated[
        Path | None,
        typer.Option("--perfetto", metavar="FILE", help="Write the trace of one cell for the viewer Perfetto."),
    ] = None,
) -> None:
    """Say what limits the cells of a run, by the critical paths through their traces.

    For each cell it takes the trial just above the maximum rate, else the fastest one below it. The share that an
    activity has of the critical path is the part of the time in which the rest had to wait for it (critical
    participation, Hoffmann et al., NSDI 2018). Without the activity no more than its share can be saved.
    """
    from bench.cli.explanation_table import encode_explained, table_lines
    from bench.cli.perfetto import write_perfetto
    from bench.runner.explanation import explain_trial
    from bench.storage.traces import read_events, read_samples

    chosen = _choose_trials(folder, name, trial)
    if perfetto is not None:
        if len(chosen) != 1:
            cells = ", ".join(one.cell.name for one in chosen)
            raise UsageError(f"--perfetto {perfetto}: takes one cell, and there are {len(chosen)}: {cells}")
        place = (folder, chosen[0].cell, chosen[0].measurement, dict(chosen[0].files))
        write_perfetto(perfetto, read_events(*place), read_samples(*place))
        complain(f"{perfetto}: open it with https://ui.perfetto.dev")
    explained = [explain_trial(folder, one) for one in chosen]
    if as_json:
        say(encode_explained(explained))
        return
    for number, one in enumerate(explained):
        for line in ("",) * bool(number) + tuple(table_lines(one)):
            say(line)


def _choose_trials(folder: Path, name: str, number: int | None) -> "Sequence[TracedTrial]":
    """Return the trial to explain of each cell whose name has a part `name`; UsageError if there is none."""
    from bench.runner.explanation import HOW_TO_TRACE, choose_trial, read_traced_trials

    traced = read_traced_trials(folder)
    cells = [cell for cell in traced if name in cell.name or name in cell.system]
    if not cells:
        raise UsageError(f"{name}: no cell of {folder}; there are {', '.join(cell.name for cell in traced)}")
    if not any(traced[cell] for cell in cells):
        raise UsageError(f"{folder}: {HOW_TO_TRACE}")
    if number is None:
        return [one for one in (choose_trial(traced[cell]) for cell in cells) if one is not None]
    return [_find_trial(traced[cell], cell, number) for cell in cells if traced[cell]]


def _find_trial(trials: "Sequence[TracedTrial]", cell: "Cell", number: int) -> "TracedTrial":
    for one in trials:
        if one.measurement.planned.number == number:
            return one
    numbers = ", ".join(str(one.measurement.planned.number) for one in trials)
    raise UsageError(f"--trial {number}: no traced trial of {cell.name}; there are {numbers}")
