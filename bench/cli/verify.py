"""`bench verify`."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from bench.cli.output import complain, say
from bench.errors import UsageError

PROGRESS_INTERVAL_S = 2.0


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench verify results/quick-20261121T120000Z")(verify)


def verify(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="The folders of runs that have ended.")],
) -> None:
    """Check that a run's files are as they were measured, and that its trials give its results.

    Every trial is judged and every result computed again. Prints a line for each difference, and for what cannot be
    checked. Exit code 4 when something differs.
    """
    from bench.runner.verification import verify_run
    from bench.storage.folder_lock import is_running

    for folder in folders:
        if is_running(folder):
            raise UsageError(f"{folder}: is running; verify it when it has ended")
    differences = 0
    for folder in folders:
        found = verify_run(folder, _progress(folder))
        differences += len(found.differences)
        for text in found.differences:
            say(f"differs      {text}")
        for text in found.unchecked:
            say(f"not checked  {text}")
        count = len(found.differences)
        outcome = f"{count} difference{'s' if count > 1 else ''}" if count else "no difference"
        say(f"{folder}: {found.trials} trials, {found.files} files, {found.cells} results computed again: {outcome}")
    raise typer.Exit(4 if differences else 0)


def complain_of_differences(folders: Sequence[Path]) -> None:
    """Print where the files of runs do not agree with their results."""
    from bench.runner.verification import check_run, summary_text

    for folder in folders:
        if text := summary_text(check_run(folder)):
            complain(f"warning: {folder}: {text}")


def _progress(folder: Path) -> Callable[[int, int], None]:
    """Return what prints the progress every PROGRESS_INTERVAL_S."""
    printed = time.monotonic()

    def notify(done: int, total: int) -> None:
        nonlocal printed
        if time.monotonic() >= printed + PROGRESS_INTERVAL_S:
            printed = time.monotonic()
            complain(f"{folder}: {done} of {total} cells")

    return notify
