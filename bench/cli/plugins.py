"""`bench plugins`."""

import typer

from bench.cli.output import say


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench plugins")(plugins)


def plugins() -> None:
    """List the installed plugins of every kind."""
    from bench.plugins.registry import KINDS, names

    for kind in KINDS:
        say(f"{kind.replace('_', ' '):16} {', '.join(names(kind))}")
