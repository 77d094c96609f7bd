"""`bench install`."""

from typing import Annotated

import typer

from bench.cli.inputs import cache_folder
from bench.cli.output import say


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench install bytewax")(install)


def install(
    frameworks: Annotated[
        list[str] | None, typer.Argument(metavar="FRAMEWORK...", help="What to install; a list when left out.")
    ] = None,
) -> None:
    """Install frameworks that `make setup` does not fetch, each in a Python environment of its own.

    Without a name, list them: how large each is, and whether it is installed.
    """
    from bench.plugins.environments import environments, install_environment
    from bench.services.python_environments import missing_reason

    for name in frameworks or ():
        say(f"{name} is installed in {install_environment(name, cache_folder(), say)}")
    if not frameworks:
        for name, environment in environments().items():
            say(missing_reason(environment, cache_folder()) or f"{name} is installed")
