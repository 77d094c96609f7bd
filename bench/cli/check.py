"""`bench check`."""

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.inputs import Changes, read_inputs, warn_of_settings
from bench.cli.output import say
from bench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench check scenarios/*.yaml")(check)


def check(
    scenarios: Annotated[list[Path], typer.Argument(metavar="SCENARIO...", help="Scenario files.")],
    *,
    changes: Changes = None,
) -> None:
    """Check scenario files; every mistake is one line."""
    mistakes = []
    for path in scenarios:
        try:
            scenario, site = read_inputs(path, None, changes)
            warn_of_settings(scenario, site)
            of_systems = f"{len(scenario.cells())} cells of {len(scenario.systems)} systems"
            policies = scenario.elasticity.policies if scenario.elasticity is not None else ()
            say(f"{path}: {of_systems}{f', {len(policies)} policies each' if policies else ''}")
        except UsageError as mistake:
            mistakes.append(str(mistake))
    if mistakes:
        raise UsageError("\n".join(mistakes))
