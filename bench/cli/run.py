"""`bench run`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.inputs import (
    DEFAULT_RESULTS,
    Changes,
    Results,
    ScenarioFile,
    SiteFile,
    read_inputs,
    warn_of_settings,
)
from bench.errors import UsageError

if TYPE_CHECKING:
    from bench.config.scenario import Scenario
    from bench.config.site import Site
    from bench.storage.run_folder import RunFolder


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench run scenarios/quick.yaml --set grid.message_size=1kB,1MB")(run)


def run(
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
    from bench.cli.run_display import missing_parts, run_with_display
    from bench.storage.run_folder import RunFolder

    chosen, where = read_inputs(scenario, site, [*(changes or []), *(["trace=true"] if trace else [])])
    warn_of_settings(chosen, where)
    folder = _resume_folder(resume, chosen, where) if resume else RunFolder.create(out, chosen.name)
    results = run_with_display(chosen, where, folder, quiet=quiet, web=web)
    raise typer.Exit(4 if missing_parts(chosen, folder, results)[0] else 0)


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
