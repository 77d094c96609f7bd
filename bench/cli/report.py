"""`bench report`, `bench export` and `bench import`."""

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.inputs import DEFAULT_RESULTS, Results, RunArgument, split_names, this_command
from bench.cli.output import say
from bench.cli.verify import complain_of_differences
from bench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command(epilog="Example:  bench report results/quick-20261121T120000Z --format html,png")(report)
    app.command(epilog="Example:  bench export results/quick-20261121T120000Z --format csv,parquet,omb")(export)
    app.command("import", epilog="Example:  bench import kafka-10kB.json pulsar-10kB.json")(import_)


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="The folder of a run; several are compared.")],
    *,
    formats: Annotated[
        str,
        typer.Option(
            "--format", help="Which files, separated by commas; see bench plugins. The page and the PDF when left out."
        ),
    ] = "",
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where a page of several runs is put.")
    ] = DEFAULT_RESULTS,
) -> None:
    """Draw the maps of a run from its folder alone; of several runs, a page that shows them side by side."""
    from bench.plugins import registry
    from bench.storage.run_folder import read_run

    if len(folders) > 1 and formats:
        raise UsageError(f"--format {formats}: several runs are put side by side in one page; leave --format out")
    complain_of_differences(folders)
    kind = read_run(folders[0]).scenario.kind
    if len(folders) > 1:
        if other := next((one for one in folders if read_run(one).scenario.kind != kind), None):
            raise UsageError(
                f"{other}: is of another kind than {folders[0]}; only runs of one kind are put side by side"
            )
        missing = f"no installed report format can show several runs of kind {kind}; pip install 'stream-bench[report]'"
        write = registry.find_report_ability(lambda one: one.compare if one.kind == kind else None, missing)
        say(str(write(folders, out)))
        return
    usual = [name for name, plugin in registry.report_plugins() if plugin.default and plugin.kind == kind]
    _write(folders[0], split_names(formats) or usual)


def export(
    folder: RunArgument,
    *,
    formats: Annotated[
        str, typer.Option("--format", help="Which tables, separated by commas; all of them when left out.")
    ] = "",
) -> None:
    """Write a run's cells and trials as tables for other tools, into its folder."""
    from bench.plugins import registry
    from bench.storage.run_folder import read_run

    kind = read_run(folder).scenario.kind
    usual = [name for name, plugin in registry.report_plugins() if plugin.export and plugin.kind == kind]
    chosen = split_names(formats) or usual
    if not chosen:
        raise UsageError(
            f"{folder}: no format exports runs of kind {kind}; its *.jsonl files have all that was measured"
        )
    _write(folder, chosen)


def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Result files of the OpenMessaging Benchmark.")
    ],
    *,
    out: Results = DEFAULT_RESULTS,
) -> None:
    """Read other tools' results as a run that can be reported and compared, but not resumed."""
    from bench.plugins import registry

    missing = "no installed report format reads other tools' results"
    read = registry.find_report_ability(lambda plugin: plugin.read, missing)
    say(str(read(files, out, this_command())))


def _write(folder: Path, formats: list[str]) -> None:
    """Write a run's files in these formats; every name is looked up before the first file is written."""
    from bench.plugins import registry
    from bench.storage.run_folder import read_run

    kind, writers = read_run(folder).scenario.kind, []
    for name in formats:
        plugin = registry.report_plugin(name)
        if plugin.write is None:
            raise UsageError(f"--format {name}: it writes no files of a run")
        if plugin.kind != kind:
            right = [own for own, other in registry.report_plugins() if other.write is not None and other.kind == kind]
            raise UsageError(
                f"--format {name}: it is for runs of kind {plugin.kind}; {folder} is of kind {kind}: {', '.join(right)}"
            )
        writers.append(plugin.write)
    for write in writers:
        for file in write(folder):
            say(str(file))
