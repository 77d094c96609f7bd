"""`bench clean`."""

import typer

from bench.cli.inputs import DEFAULT_RESULTS, Results, children_folder
from bench.cli.output import say


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench clean")(clean)


def clean(*, out: Results = DEFAULT_RESULTS) -> None:
    """End what a killed run left running, and delete the data that it left behind."""
    from bench.plugins.environment import delete_data
    from bench.storage.folder_lock import lock_run_folder
    from bench.system.orphans import reap_orphans

    for ended in reap_orphans(children_folder()):
        say(f"ended    {ended}")
    for data in sorted(out.glob("*/data")):
        lock = lock_run_folder(data.parent)
        if lock is None:
            continue
        with lock:
            delete_data(data)
        say(f"deleted  {data}")
    say("nothing is left running")
