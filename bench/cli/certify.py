"""`bench certify`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bench.cli.output import say
from bench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench certify --strategy two-counter --seeds 80 --plot validation.png")(certify)


def certify(
    *,
    strategy: Annotated[
        str,
        typer.Option("--strategy", metavar="NAME", help="Name of an installed strategy, or module:Class."),
    ] = "",
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds", min=1, max=100_000, help="Runs of each case; half as many of each map and each adversary."
        ),
    ] = 80,
    first: Annotated[int, typer.Option("--seed", "--first-seed", min=0, help="The first seed.")] = 0,
    scenario: Annotated[
        str, typer.Option("--scenario", metavar="TEXT", help="Only cases whose names contain this.")
    ] = "",
    jobs: Annotated[int, typer.Option("--jobs", min=0, max=256, help="Processes; 0 for one a core.")] = 0,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw error, coverage and time (.png, .svg).")
    ] = None,
) -> None:
    """Test a search strategy on simulated systems of known capacity; exit code 4 when a criterion is not met."""
    from functools import partial

    from bench.cli import validation_table
    from bench.config.scenario import Search
    from bench.plugins import registry
    from bench.simulation import validation_report
    from bench.simulation.mutations import MUTATED
    from bench.system import host_info, process_pool

    sys.path.insert(0, str(Path.cwd()))  # where a strategy of the user's own may lie
    strategy = strategy or Search().strategy
    maker = registry.strategy_factory(strategy)
    many = validation_report.Seeds(seeds, seeds, max(1, seeds // 2), max(1, seeds // 2), first=first)
    todo = validation_report.list_tasks(many, only=scenario, mutations=maker is MUTATED)
    if not todo:
        known = ", ".join(validation_report.case_names())
        raise UsageError(f"--scenario {scenario}: no case has that in its name; there are: {known}")
    todo.sort(key=lambda task: task.kind != "map")  # the longest first: in the end no process waits for another one
    processes = min(len(todo), jobs or host_info.cores())
    answers = process_pool.map_unordered(partial(validation_report.run_task, strategy=maker), todo, processes)
    report = validation_report.build_report(strategy, many, validation_table.track_progress(answers, len(todo)))
    validation_table.print_report(report)
    if plot is not None:
        missing = "--plot: no installed report format draws it; pip install 'stream-bench[report]'"
        draw = registry.find_report_ability(lambda plugin: plugin.draw_validation, missing)
        say(str(draw(report, plot)))
    raise typer.Exit(0 if all(criterion.passed for criterion in report.criteria) else 4)
