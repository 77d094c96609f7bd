"""The output of `bench compare` for two runs of kind elasticity: the policies of both, one below the other."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench.elasticity.live_comparison import (
    FIGURES,
    NO_INTERVAL,
    PolicyResult,
    describe_difference,
    figure_texts,
    match_policies,
)

NAMES = ("A", "B")


def print_policy_comparison(
    runs: Sequence[Sequence[PolicyResult]], changed: Sequence[str], *, width: int | None = None
) -> None:
    """Print a table for each system, a sentence for each policy, and what differs between the scenarios.

    Args:
        runs: The results of A and of B.
        changed: The settings that differ, one text each.
        width: As of `bench.cli.advice_table.print_advice`.
    """
    console = Console(highlight=False, markup=False, width=width or (None if sys.stdout.isatty() else 200))
    by_policy = match_policies(runs)
    for system in dict.fromkeys(system for system, _ in by_policy):
        own = {policy: results for (of, policy), results in by_policy.items() if of == system}
        console.print(system)
        table = _make_table(own)
        if table.row_count:
            console.print(table)
        for policy, (first, second) in own.items():
            console.print(f"{policy}, B compared with A: {describe_difference(first, second)}")
        console.print()
    for text in changed:
        console.print(f"differs: {text}")
    console.print(NO_INTERVAL)


def _make_table(policies: dict[str, list[PolicyResult | None]]) -> Table:
    table = Table("policy", "run", box=None, pad_edge=False)
    for figure in FIGURES:
        table.add_column(figure.lower(), justify="right")
    for policy, results in policies.items():
        for name, result in zip(NAMES, results, strict=True):
            if result is not None and not result.run.is_unsupported:
                table.add_row(policy, name, *figure_texts(result))
    return table
