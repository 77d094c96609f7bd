"""`bench calibrate`."""

from typing import Annotated

import typer

from bench.cli.inputs import (
    DEFAULT_RESULTS,
    Changes,
    Results,
    SiteFile,
    cache_folder,
    children_folder,
    split_names,
)
from bench.cli.output import say


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench calibrate kafka tcp --against client-loop --sizes 100B,1MB")(calibrate)


def calibrate(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM|SOURCE...",
            help="A source or system, such as kafka or spark/tcp; `message` measures the message codec.",
        ),
    ],
    *,
    against: Annotated[
        str,
        typer.Option(
            help="Compare with these baseline producers, such as client-loop or constant; separated by commas."
        ),
    ] = "",
    sizes: Annotated[str, typer.Option(help="Message sizes, separated by commas.")] = "100B,1kB,10kB,100kB,1MB,10MB",
    runs: Annotated[int, typer.Option(min=1, max=99, help="Repetitions; the median counts.")] = 3,
    seconds: Annotated[float, typer.Option(min=0.5, max=600, help="Seconds of one repetition.")] = 1.5,
    offered: Annotated[
        bool, typer.Option("--offered", help="Measure how accurately rates are kept, from 0.1/s to 0.9 of the maximum.")
    ] = False,
    site: SiteFile = None,
    out: Results = DEFAULT_RESULTS,
    changes: Changes = None,
) -> None:
    """Measure the maximum rate of the load generator with each source, while no framework reads."""
    from bench.cli.calibration_table import CalibrationRequest, table_lines
    from bench.plugins.site_file import read_site_file
    from bench.storage.run_folder import RunFolder

    folder = RunFolder.create(out, "calibrate").folder
    request = CalibrationRequest(names, split_names(against), sizes, runs, seconds, changes or [], offered=offered)
    for line in table_lines(request, folder, read_site_file(site), cache_folder(), children_folder()):
        say(line)
    say(f"saved    {folder}")
