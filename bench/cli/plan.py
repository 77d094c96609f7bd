"""`bench plan`."""

import typer

from bench.cli.inputs import DEFAULT_RESULTS, Changes, Results, ScenarioFile, SiteFile, cache_folder, read_inputs
from bench.cli.output import say


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench plan scenarios/frameworks.yaml")(plan)


def plan(
    scenario: ScenarioFile, *, site: SiteFile = None, out: Results = DEFAULT_RESULTS, changes: Changes = None
) -> None:
    """Estimate what a scenario will take: cells, time, disk, and what is missing."""
    from bench.cli.run_estimate import estimate_run
    from bench.search.map_budget import total_warning
    from bench.units import seconds_text

    chosen, where = read_inputs(scenario, site, changes)
    estimate = estimate_run(chosen, where, out, cache_folder())
    say(
        f"cells    {len(estimate.cells)} ({len(chosen.systems)} systems), {len(estimate.unsupported)}"
        " of them unsupported"
    )
    again = "" if estimate.passes else ", longer where cells are visited again"
    say(f"time     about {seconds_text(estimate.seconds)}, at most {seconds_text(estimate.longest)}{again}")
    if estimate.passes:
        say(f"passes   {estimate.passes}")
    able = len(estimate.cells) - len(estimate.unsupported)
    if (warning := total_warning(chosen, able)) is not None:
        say(f"warning  {warning}")
    say(f"disk     about {estimate.disk / 1e9:.1f} GB at a time, {estimate.free / 1e9:.0f} GB free")
    for name, reason in estimate.unsupported.items():
        say(f"cannot   {name}: {reason}")
    for gap in estimate.missing or ["nothing"]:
        say(f"missing  {gap}")
