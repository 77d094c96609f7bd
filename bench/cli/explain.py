"""`bench explain`."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.inputs import DEFAULT_RESULTS, Results, RunArgument, refuse_options
from bench.cli.output import complain, say
from bench.errors import UsageError

if TYPE_CHECKING:
    from bench.config.scenario import Scenario
    from bench.config.site import Site
    from bench.model.cell import Cell
    from bench.model.measurement import Result
    from bench.runner.explanation import ExplainedTrial, TracedTrial
    from bench.storage.run_folder import RunFolder

    Measure = Callable[[Scenario, Site, RunFolder], Sequence[Result]]


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
    try_advice: Annotated[
        bool, typer.Option("--try", help="Measure one cell again with the setting changed that would help it.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Run one cell again and draw a flame graph of each busy process.")
    ] = False,
    budget: Annotated[str, typer.Option("--budget", metavar="TIME", help="With --try: time of the search.")] = "2 min",
    out: Results = DEFAULT_RESULTS,
    quiet: Annotated[bool, typer.Option("--quiet", help="With --try and --profile: print only the outcome.")] = False,
) -> None:
    """Say what limits the cells of a run, by the critical paths through their traces.

    For each cell it takes the trial just above the maximum rate, else the fastest one below it. The share that an
    activity has of the critical path is the part of the time in which the rest had to wait for it (critical
    participation, Hoffmann et al., NSDI 2018). Without the activity no more than its share can be saved.

    With --try the cell is measured again, in a run folder of its own, with the first change that the sentence names and
    that a setting makes; a table has the predicted and the measured maximum rate. Exit code 4 if none was measured.

    With --profile the cell runs again for half a minute at the rate that it sustained, and its busy processes are
    sampled. The flame graphs are in profiles/ of the run folder. That needs no trace, and stores no measurement.
    """
    from bench.cli.explanation_table import encode_explained, table_lines
    from bench.cli.perfetto import write_perfetto
    from bench.runner.explanation import explain_trial
    from bench.storage.traces import read_events, read_samples

    if profile:
        from bench.cli.flame_graphs import profile_one

        given = {"--json": as_json, "--try": try_advice, "--perfetto": perfetto, "--trial": trial is not None}
        refuse_options(given, "--profile explains nothing; leave one of them out")
        profile_one(folder, name, quiet=quiet)
        return
    if as_json and try_advice:
        raise UsageError("--json: the table of --try has no JSON; leave one of them out")
    chosen = _choose_trials(folder, name, trial)
    for option in (f"--perfetto {perfetto}",) * (perfetto is not None) + ("--try",) * try_advice:
        if len(chosen) != 1:
            cells = ", ".join(one.cell.name for one in chosen)
            raise UsageError(f"{option}: takes one cell, and there are {len(chosen)}: {cells}")
    if perfetto is not None:
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
    if try_advice:
        from bench.cli.run_display import run_with_display

        measure = partial(run_with_display, quiet=quiet, go_on="what was measured is in ")
        try_change(folder, explained[0], budget, out, measure)


def try_change(folder: Path, explained: "ExplainedTrial", budget: str, out: Path, measure: "Measure") -> None:
    """Measure the cell of an explained trial with the change that its sentence names, and print what came of it.

    Args:
        folder: Of the run that the trial is of.
        explained: The trial.
        budget: Time of the search, as a person writes it.
        out: Where the folder of the new run is made.
        measure: Runs a scenario.

    Raises:
        UsageError: The sentence names no change that a setting makes, or the budget is no time.
        typer.Exit: With code 4: nothing was measured.
    """
    from bench.cli.inputs import warn_of_settings
    from bench.cli.prediction_table import outcome_lines, plan_lines
    from bench.runner.intervention import plan_intervention
    from bench.storage.run_folder import RunFolder
    from bench.units import Seconds

    try:
        allowed = Seconds.read(budget)
    except ValueError as allowed_texts:
        raise UsageError(f"--budget {budget}: found {budget!r}; allowed: {allowed_texts}") from None
    if allowed <= 0:
        raise UsageError(f"--budget {budget}: found {budget!r}; allowed: a duration over 0 s")
    planned = plan_intervention(folder, explained, allowed)
    say("")
    for line in plan_lines(planned):
        say(line)
    warn_of_settings(planned.scenario, planned.site)
    store = RunFolder.create(out, planned.scenario.name)
    (result,) = measure(planned.scenario, planned.site, store)
    for line in outcome_lines(planned, result):
        say(line)
    if result.estimate_hz is None:
        raise typer.Exit(4)


def _choose_trials(folder: Path, name: str, number: int | None) -> "Sequence[TracedTrial]":
    """Return the trial to explain of each cell whose name has a part `name`; UsageError if there is none."""
    from bench.runner.explanation import HOW_TO_TRACE, choose_trial, read_traced_trials

    traced = read_traced_trials(folder)
    cells = [cell for cell in traced if name in cell.name or name in cell.system]
    if not cells:
        raise UsageError(f"{name}: no cell of {folder}; there are {', '.join(cell.name for cell in traced)}")
    if not any(traced[cell] for cell in cells):
        raise UsageError(f"{folder}: no trial of it was traced; {HOW_TO_TRACE}")
    if untraced := sum(not traced[cell] for cell in cells):
        complain(f"{untraced} of {len(cells)} cells were not traced; {HOW_TO_TRACE}")
    if number is None:
        return [one for one in (choose_trial(traced[cell]) for cell in cells) if one is not None]
    return [_find_trial(traced[cell], cell, number) for cell in cells if traced[cell]]


def _find_trial(trials: "Sequence[TracedTrial]", cell: "Cell", number: int) -> "TracedTrial":
    for one in trials:
        if one.measurement.planned.number == number:
            return one
    numbers = ", ".join(str(one.measurement.planned.number) for one in trials)
    raise UsageError(f"--trial {number}: no traced trial of {cell.name}; there are {numbers}")
