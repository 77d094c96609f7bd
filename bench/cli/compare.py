"""`bench compare`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.output import say
from bench.cli.verify import complain_of_differences
from bench.errors import UsageError

if TYPE_CHECKING:
    from bench.storage.records import RunRecord


def register(app: typer.Typer) -> None:
    """Add the verb."""
    example = "Example:  bench compare results/quick-20261121T120000Z results/quick-20261122T120000Z --fail-if slower"
    app.command(epilog=example)(compare)


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="The folder of a run.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The folder of another run of the same cells.")],
    *,
    fail_if: Annotated[
        str, typer.Option("--fail-if", metavar="WORD", help="Exit code 4 if a cell of B is: slower, faster.")
    ] = "",
) -> None:
    """Compare each cell of B with A: faster, slower or undecided. Of runs of kind elasticity, compare the policies.

    At most 1 in 20 maps of equal systems shows any change. A difference that the machine's speed may explain, where
    both runs measured it, is undecided. Settings, machines and versions that differ are listed.
    Of policies no difference has an interval: each run has followed its load once.
    """
    from bench.analysis import comparison
    from bench.analysis.intervals import name_intervals
    from bench.elasticity.live_comparison import list_changed_settings
    from bench.plugins import registry
    from bench.storage.run_folder import read_results, read_run, read_speed
    from bench.system import host_info
    from bench.system.machine_speed import speed_ratios

    if fail_if not in ("", "slower", "faster"):
        raise UsageError(f"--fail-if {fail_if}: found no such verdict; allowed: slower, faster")
    records = [read_run(folder) for folder in (first, second)]
    if any(record.scenario.elasticity is not None for record in records):
        if fail_if:
            raise UsageError(f"--fail-if {fail_if}: is for runs of kind map; policies have no interval that decides")
        _compare_policies((first, second), records)
        return
    calibrated = [registry.is_calibrated(record.scenario.search.strategy) for record in records]
    complain_of_differences([first, second])
    results = [
        name_intervals(read_results(folder), calibrated=known)
        for folder, known in zip((first, second), calibrated, strict=True)
    ]
    rates = [{result.cell: comparison.claim_text(result) for result in found} for found in results]
    speeds = speed_ratios(read_speed(first), read_speed(second))
    compared = comparison.compare(results[0], results[1], speeds=tuple(speeds.values()))
    for each in compared:
        a, b = (known.get(each.cell, "") for known in rates)
        reason = f"  {each.why}" if each.why else ""
        say(f"{each.word:12} {each.cell.name:32} {a:>10} -> {b:>10}  {comparison.ratio_text(each)}{reason}")
    counts = {
        word: sum(each.word == word for each in compared) for word in ("faster", "slower", "undecided", "not compared")
    }
    say(", ".join(f"{count} {word}" for word, count in counts.items()))
    changed = list_changed_settings(records[0].scenario, records[1].scenario)
    for text in [*changed, *host_info.list_differences(records[0].facts, records[1].facts)]:
        say(f"differs: {text}")
    if speeds:
        ratios = ", ".join(f"{name} {ratio:.2f} times as fast" for name, ratio in speeds.items())
        say(
            f"machine of B relative to A, by a fixed piece of work: {ratios};"
            " a difference that this may explain counts as undecided"
        )
    raise typer.Exit(4 if counts.get(fail_if) else 0)


def _compare_policies(folders: tuple[Path, Path], records: "list[RunRecord]") -> None:
    """Print the policies of two runs of kind elasticity side by side; UsageError if they had different loads."""
    from bench.cli.policy_comparison_table import print_policy_comparison
    from bench.elasticity.live_comparison import list_changed_settings, why_not_compared, why_rates_differ
    from bench.runner.elasticity import read_policy_results

    first, second = (record.scenario for record in records)
    if reason := why_not_compared(first, second):
        raise UsageError(f"{folders[1]}: {reason}")
    results = [read_policy_results(folder) for folder in folders]
    if reason := why_rates_differ(*results):
        raise UsageError(f"{folders[1]}: {reason}")
    complain_of_differences(folders)
    print_policy_comparison(results, list_changed_settings(first, second))
