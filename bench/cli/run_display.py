"""A run with its display, its log and its default reports: what `bench run` and `bench explain --try` share."""

import logging
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cli.inputs import cache_folder, children_folder, this_command
from bench.cli.output import say
from bench.errors import InterruptedRunError

if TYPE_CHECKING:
    from bench.config.scenario import Scenario
    from bench.config.site import Site
    from bench.model.measurement import Result
    from bench.storage.run_folder import RunFolder


def run_with_display(
    scenario: "Scenario",
    site: "Site",
    folder: "RunFolder",
    *,
    quiet: bool,
    web: bool = False,
    go_on: str = "go on with --resume ",
) -> "Sequence[Result]":
    """Run a scenario in a folder and write its default reports; say how it ended.

    Args:
        scenario: The scenario.
        site: Where it runs.
        folder: Of the run.
        quiet: Whether only the outcome is printed.
        web: Whether the load generator opens a page of its own.
        go_on: What to do with the folder of an interrupted run; the folder's path follows.

    Returns:
        The results of all cells.

    Raises:
        InterruptedRunError: Ctrl-C; everything is stopped.
    """
    from bench.cli.terminal import terminal
    from bench.plugins import registry
    from bench.runner.live_status import live_status
    from bench.runner.progress import TimeUse, notify_all
    from bench.runner.run import RunOptions, run

    _log_to(folder.folder / "harness.log", {"bench", *registry.top_packages()})
    options = RunOptions(this_command(), cache_folder(), children_folder(), web=web)
    time_use = TimeUse()
    try:
        with (
            terminal(_count_parts(scenario), folder.folder, quiet=quiet) as screen,
            live_status(folder.folder) as status,
        ):
            results = run(scenario, site, folder, notify_all(status, screen, time_use), options)
        spent = str(time_use)
        for _, plugin in registry.report_plugins():
            if plugin.default and plugin.write is not None and plugin.kind == scenario.kind:
                for file in plugin.write(folder.folder):
                    say(str(file))
    except KeyboardInterrupt:
        raise InterruptedRunError(f"interrupted, everything is stopped; {go_on}{folder.folder}") from None
    missing, parts = missing_parts(scenario, folder, results)
    if any(result.was_ended_by_error for result in results):
        say(f"an error ended some cells; {go_on}{folder.folder}")
    say(f"{parts}, {missing} without a result, {spent}: {folder.folder}")
    return results


def missing_parts(scenario: "Scenario", folder: "RunFolder", results: "Sequence[Result]") -> tuple[int, str]:
    """Return how many parts of a finished run have no result, and a text with how many there are, and of what."""
    from bench.runner.elasticity import read_policy_runs

    if scenario.elasticity is None:
        return sum(result.status in ("failed", "not-measured") for result in results), f"{len(results)} cells"
    runs = read_policy_runs(folder.folder)
    return sum(not (one.is_complete or one.is_unsupported) for one in runs), f"{len(runs)} runs of policies"


def _count_parts(scenario: "Scenario") -> int:
    """Return how many cells a scenario has, each of them once for every policy."""
    return len(scenario.cells()) * (1 if scenario.elasticity is None else len(scenario.elasticity.policies))


def _log_to(path: Path, packages: Collection[str]) -> None:
    """Write warnings to a file, and also the information that modules of these packages log."""
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in packages:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.getLogger().setLevel(logging.WARNING)  # what client libraries log is not about the run
