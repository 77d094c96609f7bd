"""The installed policies beside each other on a simulated job: the second table of `bench advise`."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.config.validation import apply_changes, convert_settings
from bench.config.yaml_document import Document
from bench.elasticity.live_samples import FLOW, OPERATOR
from bench.elasticity.policy import Policy
from bench.elasticity.policy_comparison import PolicyComparison
from bench.elasticity.policy_run import Score
from bench.plugins import registry
from bench.units import rate_text, seconds_text

COLUMNS = ("policy", "below the load", "longest wait", "worker-hours", "most workers", "changes")


class _Changed(Struct, forbid_unknown_fields=True):
    """The keys that `--set` may change."""

    settings: dict[str, dict[str, Any]] = {}


class Rescaling(Struct, frozen=True):
    """A change of the number of workers."""

    at: float
    """seconds since the beginning"""
    workers: int
    reason: str


class PolicyRow(Struct, frozen=True):
    """The outcome of one policy, as JSON has it."""

    policy: str
    score: Score
    changes: list[Rescaling]


def make_policies(changes: Sequence[str]) -> Mapping[str, Policy]:
    """Return every installed policy with `--set settings.POLICY.KEY=VALUE` changes of its settings.

    Raises:
        UsageError: A change is of something else, or of a policy that is not installed.
    """
    document = apply_changes(Document("bench advise", {}), changes)
    settings = convert_settings(_Changed, document.values, "", document).settings
    for name in settings:
        registry.policy_plugin(name)
    return {name: registry.make_policy(name, settings, FLOW) for name in registry.names("policies")}


def list_rows(comparison: PolicyComparison) -> list[PolicyRow]:
    """Return the outcomes of the policies, the cheapest first."""
    return [
        PolicyRow(
            run.policy,
            run.score,
            [
                Rescaling(each.sample.at, each.plan.parallelism[OPERATOR], each.plan.reason)
                for each in run.decisions
                if each.is_change
            ],
        )
        for run in comparison.runs
    ]


def print_policies(comparison: PolicyComparison, *, width: int | None = None) -> None:
    """Print the table; `width` as of `bench.cli.advice_table.print_advice`."""
    console = Console(highlight=False, markup=False, width=width or (None if sys.stdout.isatty() else 200))
    following = comparison.following
    spent, highest = seconds_text(len(following.load_hz) * following.interval), rate_text(max(following.load_hz))
    rate, start = rate_text(following.worker_hz), following.start
    every, pause = seconds_text(following.interval), seconds_text(following.pause)
    console.print(
        f"\nSimulated: policies on {following.system}, {rate} a worker, from {start} workers; {spent} of load,"
        f" {highest} at most; a decision every {every}, {pause} of pause after a change"
    )
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for run in comparison.runs:
        score = run.score
        wait = "for ever" if score.max_wait_s == float("inf") else seconds_text(score.max_wait_s)
        hours = f"{score.instance_s / 3600:.3g}"
        below = seconds_text(score.under_target_s)
        table.add_row(run.policy, below, wait, hours, str(score.most_instances), str(score.changes))
    console.print(table)
