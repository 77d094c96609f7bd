"""Figures of policies on running systems, and the comparison of two runs whose policies followed the same load.

One run has no interval: how far the same policy varies from run to run is not known. So nothing is called better here.
A time that differs by at most one interval between two decisions is not told apart, since times are counted in these.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from bench.config.scenario import Scenario
from bench.elasticity.live_run import LivePolicyRun, LiveScore, score_live, split_by_load
from bench.elasticity.policy_run import Decision, score_run
from bench.model.measurement import Measurement
from bench.units import exact_text, seconds_text

FIGURES = (
    "Under target", "Most waiting", "Worker-seconds", "Changes", "Overshoot", "Settled after",
    "Latency p50", "p99", "Sent", "Lost", "Repeated", "Processed again",
)  # fmt: skip
COUNTS = {"lost": "lost", "duplicated": "repeated", "processed_again": "processed again"}
"""Of a measurement: counts that a sentence names where they differ, with their words."""
NO_INTERVAL = "One run each: differences have no interval. Repeat both runs to see how far each policy varies."
LOAD_KEYS = ("arrivals", "bursts", "steps", "trace", "entropy", "keys", "seed")
"""Of `Scenario.load`: what decides when which message is due."""
MAX_RATE_DIFFERENCE = 0.1
"""Relative difference of the offered rates of an interval up to which two runs had the same load."""
LABELS = ("name", "title", "kind", "systems")
"""Keys of a scenario that do not change what a policy does."""


class PolicyResult(Struct, frozen=True):
    """The run of one policy on one system, and the counts of its trial; None where there are none."""

    run: LivePolicyRun
    measurement: Measurement | None

    @property
    def live(self) -> LiveScore | None:
        """Return its score; None before its first interval."""
        return score_live(self.run.decisions) if self.run.decisions else None


def figure_texts(result: PolicyResult) -> tuple[str, ...]:
    """Return the texts of FIGURES for a policy; an empty text is not known."""
    live, counts = result.live, _count_texts(result.measurement)
    if live is None:
        return (*[""] * 6, *counts)
    score, settled = live.score, "never" if live.settle_s is None else seconds_text(live.settle_s)
    return (
        seconds_text(score.under_target_s), f"{score.max_backlog:.0f}", f"{score.instance_s:.0f}", str(score.changes),
        str(live.overshoot), settled, *counts,
    )  # fmt: skip


def _count_texts(measurement: Measurement | None) -> tuple[str, ...]:
    """Return latencies from due to processed, and what was sent, lost, repeated and processed again."""
    if measurement is None:
        return ("",) * 6
    latencies = (measurement.from_due.p50, measurement.from_due.p99)
    texts = (seconds_text(each) if each is not None else "" for each in latencies)
    counts = (measurement.sent, measurement.lost, measurement.duplicated, measurement.processed_again)
    return (*texts, *map(str, counts))


def why_not_compared(first: Scenario, second: Scenario) -> str:
    """Return why policies of two scenarios cannot be compared; empty if both send the same load."""
    if first.kind != second.kind:
        return f"is of kind {second.kind}, the other run of kind {first.kind}; compare runs of one kind"
    loads = [
        {"elasticity.load": one.elasticity.load if one.elasticity else ()}
        | {f"grid.{key}": getattr(one.grid, key) for key in ("message_size", "cpu_cost")}
        | {f"load.{key}": getattr(one.load, key) for key in LOAD_KEYS}
        for one in (first, second)
    ]
    other = [key for key, value in loads[0].items() if loads[1][key] != value]
    return f"has another load than the other run ({', '.join(other)}); compare runs of the same load" if other else ""


def why_rates_differ(first: Sequence[PolicyResult], second: Sequence[PolicyResult]) -> str:
    """Return why two runs had different loads although their scenarios are equal; empty if their rates are.

    A trace is a file, which may have changed between them.
    """
    for a, b in match_policies([first, second]).values():
        if a is None or b is None:
            continue
        rates = [{one.sample.at: sum(one.sample.offered.values()) for one in each.run.decisions} for each in (a, b)]
        both = sorted(rates[0].keys() & rates[1].keys())
        other = [at for at in both if not math.isclose(rates[0][at], rates[1][at], rel_tol=MAX_RATE_DIFFERENCE)]
        if other:
            where = f"{a.run.policy} at {seconds_text(other[0])}"
            return f"had another load than the other run ({where}); compare runs of the same load"
    return ""


def list_changed_settings(first: Scenario, second: Scenario) -> list[str]:
    """Return "key: a → b" for each key in which two scenarios of one load differ, apart from their names."""
    flat = [dict(_flatten(msgspec.to_builtins(one, enc_hook=exact_text))) for one in (first, second)]
    keys = [key for key in dict.fromkeys([*flat[0], *flat[1]]) if key.split(".")[0] not in LABELS]
    pairs = {key: tuple(str(one.get(key, "left out")) for one in flat) for key in keys}
    return [f"{key}: {a} → {b}" for key, (a, b) in pairs.items() if a != b]


def _flatten(values: Mapping[str, Any], before: str = "") -> list[tuple[str, object]]:
    found = list[tuple[str, object]]()
    for key, value in values.items():
        inside = isinstance(value, dict) and value
        found += _flatten(value, f"{before}{key}.") if inside else [(f"{before}{key}", value)]
    return found


def match_policies(runs: Sequence[Sequence[PolicyResult]]) -> dict[tuple[str, str], list[PolicyResult | None]]:
    """Return, by system and policy, what each run has of it; None where a run has nothing."""
    by_policy = [{(each.run.system, each.run.policy): each for each in run} for run in runs]
    keys = dict.fromkeys(key for run in by_policy for key in run)
    return {key: [run.get(key) for run in by_policy] for key in keys}


def describe_difference(first: PolicyResult | None, second: PolicyResult | None) -> str:
    """Return how a policy did in the second run, compared with the first one; a sentence without its subject."""
    if first is None or second is None:
        return f"only in the {'second' if first is None else 'first'} run"
    if all(one.run.is_unsupported for one in (first, second)):
        return f"unsupported: {second.run.end.reason if second.run.end else ''}"
    unfinished = [name for name, one in (("first", first), ("second", second)) if not one.run.is_complete]
    if unfinished:
        return f"not compared: it is not complete in the {' and the '.join(unfinished)} run"
    parts = [_describe_target(first.run.decisions, second.run.decisions)]
    parts.append(_describe_cost(first.run.decisions, second.run.decisions))
    for name, word in COUNTS.items():
        counts = [getattr(one.measurement, name) for one in (first, second) if one.measurement is not None]
        if len(set(counts)) > 1:
            parts.append(f"{word} {' → '.join(map(str, counts))}")
    return ", ".join(parts)


def _describe_target(first: Sequence[Decision], second: Sequence[Decision]) -> str:
    """Return by how much a policy was under target for longer, and in how many of the loads."""
    more = score_run(second).under_target_s - score_run(first).under_target_s
    interval = max(decisions[0].sample.seconds for decisions in (first, second))
    if abs(more) <= interval:
        return f"under target for as long, within one interval of {seconds_text(interval)}"
    text = f"under target for {seconds_text(abs(more))} {'longer' if more > 0 else 'less'}"
    loads = [[score_run(load).under_target_s for load in split_by_load(one)] for one in (first, second)]
    if len(loads[0]) != len(loads[1]) or len(loads[0]) < 2:
        return text
    pairs = list(zip(*loads, strict=True))
    longer, shorter = sum(b > a for a, b in pairs), sum(b < a for a, b in pairs)
    return f"{text} (longer in {longer} of {len(pairs)} loads, less in {shorter})"


def _describe_cost(first: Sequence[Decision], second: Sequence[Decision]) -> str:
    cost, other = score_run(first).instance_s, score_run(second).instance_s
    if cost == other:
        return "the same worker-seconds"
    return f"{abs(other - cost):.0f} worker-seconds {'more' if other > cost else 'fewer'} ({other / cost - 1:+.0%})"
