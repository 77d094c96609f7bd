"""`bench watch`."""

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.output import say
from bench.errors import InterruptedRunError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench watch results/quick-20261121T120000Z")(watch)


def watch(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a running run.")],
    *,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on; by default only this machine can look.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; a free one when left out.")] = 0,
) -> None:
    """Show a run while it goes on, as a live page that can only be read; ends with the run."""
    from bench.plugins import registry

    missing = "no installed report format serves a live page; pip install 'stream-bench[report]'"
    serve = registry.find_report_ability(lambda plugin: plugin.serve, missing)
    try:
        serve(folder, host=host, port=port, say=say)
    except KeyboardInterrupt:
        raise InterruptedRunError("stopped watching; the run goes on") from None
