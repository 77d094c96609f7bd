"""`bench run`."""

import logging
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.inputs import (
    DEFAULT_RESULTS,
    Changes,
    Results,
    ScenarioFile,
    SiteFile,
    cache_folder,
    children_folder,
    read_inputs,
    this_command,
    warn_of_settings,
)
from bench.cli.output import say
from bench.errors import InterruptedRunError, UsageError

if TYPE_CHECKING:
    from bench.config.scenario import Scenario
    from bench.config.site import Site
    from bench.storage.run_folder import RunFolder


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench run scenarios/quick.yaml --set grid.message_size=1kB,1MB")(run)


def run(  # one argument for each option
    scenario: ScenarioFile,
    *,
    site: SiteFile = None,
    out: Results = DEFAULT_RESULTS,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="DIR", help="Go on with the run in this folder.")
    ] = None,
    changes: Changes = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the outcome.")] = False,
    web: Annotated[
        bool, typer.Option("--web", help="Open the load generator's own page while it runs, on loopback.")
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Keep traces of the workers for bench explain; the same as trace=true.")
    ] = False,
) -> None:
    """Find the maximum sustainable throughput of every cell of a scenario, and report it."""
    from bench.cli.terminal import terminal
    from bench.plugins import registry
    from bench.runner.live_status import live_status
    from bench.runner.progress import TimeUse, notify_all
    from bench.runner.run import RunOptions
    from bench.runner.run import run as run_scenario
    from bench.storage.run_folder import RunFolder

    chosen, where = read_inputs(scenario, site, [*(changes or []), *(["trace=true"] if trace else [])])
    warn_of_settings(chosen, where)
    folder = _resume_folder(resume, chosen, where) if resume else RunFolder.create(out, chosen.name)
    _log_to(folder.folder / "harness.log", {"bench", *registry.top_packages()})
    options = RunOptions(this_command(), cache_folder(), children_folder(), web=web)
    time_use = TimeUse()
    try:
        with (
            terminal(len(chosen.cells()), folder.folder, quiet=quiet) as screen,
            live_status(folder.folder) as status,
        ):
            results = run_scenario(chosen, where, folder, notify_all(status, screen, time_use), options)
        spent = str(time_use)
        for _, plugin in registry.report_plugins():
            if plugin.default and plugin.write is not None:
                for file in plugin.write(folder.folder):
                    say(str(file))
    except KeyboardInterrupt:
        raise InterruptedRunError(f"interrupted, everything is stopped; go on with --resume {folder.folder}") from None
    missing = sum(result.status in ("failed", "not-measured") for result in results)
    say(f"{len(results)} cells, {missing} without a result, {spent}: {folder.folder}")
    raise typer.Exit(4 if missing else 0)


def _resume_folder(folder: Path, scenario: "Scenario", site: "Site") -> "RunFolder":
    """Return the folder of an earlier run; it must have been of the same scenario, on the same site and machine."""
    from bench.config.site import same_site
    from bench.storage.run_folder import RunFolder, read_run, require_current_format
    from bench.system import host_info

    require_current_format(folder)
    record = read_run(folder)
    if "imported" in record.facts:
        raise UsageError(f"{folder}: was imported from another tool's results; it can be reported, but not resumed")
    if record.scenario != scenario:
        raise UsageError(
            f"{folder}: is a run of another scenario or with other settings; give the ones in its run.json"
        )
    if not same_site(record.site, site):
        raise UsageError(
            f"{folder}: was measured on the site {record.site.name!r}, whose file differs from this one;"
            " give the site as it is in run.json with --site"
        )
    if changed := host_info.find_change(record.facts):
        raise UsageError(
            f"{folder}: was started with {changed}; new cells would not be comparable with its cells; start a new run"
        )
    return RunFolder(folder)


def _log_to(path: Path, packages: Collection[str]) -> None:
    """Write warnings to a file, and also the information that modules of these packages log."""
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in packages:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.getLogger().setLevel(logging.WARNING)  # what client libraries log is not about the run
