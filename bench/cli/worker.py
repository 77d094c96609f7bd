"""`bench worker`."""

from typing import Annotated

import typer

from bench.cli.output import say
from bench.errors import InterruptedRunError, UsageError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench worker 10.0.0.5:5557")(worker)


def worker(
    master: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="The address `load.listen` in the site file of the runs.")
    ],
    *,
    processes: Annotated[
        int, typer.Option("--processes", min=1, max=256, help="Number of workers on this host; each uses one core.")
    ] = 1,
) -> None:
    """Run load workers on this host. They serve one run after the other, until Ctrl-C."""
    from bench.config.validation import read_address
    from bench.plugins import registry

    plugin = registry.load_generator_plugin(None)
    if plugin.join is None:
        raise UsageError(f"the load generator {registry.default_load_generator()!r} has no workers on other hosts")
    try:
        plugin.join(read_address(master), processes, say)
    except KeyboardInterrupt:
        raise InterruptedRunError("the load workers have stopped") from None
