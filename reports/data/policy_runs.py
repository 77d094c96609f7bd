"""Data of a run of kind elasticity, read from its folder: what each policy did on each system, and its score."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from bench.config.scenario import Scenario
from bench.elasticity.live_comparison import FIGURES, PolicyResult, figure_texts
from bench.elasticity.live_run import LivePolicyRun, needed_workers, worker_rate
from bench.elasticity.live_samples import SOURCE
from bench.elasticity.policy_comparison import Following, PolicyComparison, PolicyRun
from bench.errors import UsageError
from bench.runner.elasticity import read_policy_results
from bench.storage.run_folder import read_run
from bench.units import seconds_text, size_text

COLUMNS = ("Policy", *FIGURES)
ABOUT_COLUMNS = (
    "Under target: the time in which less was taken than offered. Worker-seconds: the cost, workers times seconds."
    " Overshoot: the most workers that a change added beyond those that the load needs. Settled after: the longest time"
    " from a change of the load to the last change of workers; “never” where a load was not met at its end. Latency is"
    " the time from when a message was due until it was processed. Lost and repeated messages are counted exactly;"
    " those that a change of workers made the framework process once more are no fault, and are counted apart."
)
ABOUT_FIGURE = (
    "Above: what was offered, and what the workers can take by their true rate (messages by the time of useful work)."
    " Below: messages that have been due for more than half a second and are not processed."
)


class ElasticSystem(Struct, frozen=True):
    """A system and the policies that scaled it, in the scenario's order."""

    system: str
    policies: tuple[PolicyResult, ...]

    @property
    def worker_hz(self) -> float | None:
        """The true rate of one worker in messages/s; None if nothing was processed."""
        return worker_rate([decision for policy in self.policies for decision in policy.run.decisions])


class SystemTexts(Struct, frozen=True):
    """Texts of a report about one system; the same in each format."""

    system: str
    summary: str
    workers: str
    rows: tuple[tuple[str, ...], ...]
    """texts of COLUMNS, one row for each policy"""
    changes: tuple[tuple[str, Sequence[tuple[str, str, str]]], ...]
    """policies that changed the workers, each with (time, workers before and after, reason)"""


def describe_system(elastic: ElasticSystem) -> SystemTexts:
    """Return what a report says of a system."""
    changes = [(policy.run.policy, list_changes(policy)) for policy in elastic.policies]
    return SystemTexts(
        elastic.system,
        summarize_policies(elastic),
        describe_workers(elastic),
        tuple(make_policy_rows(elastic)),
        tuple((policy, rows) for policy, rows in changes if rows),
    )


def read_elastic_systems(folder: Path) -> tuple[Scenario, tuple[ElasticSystem, ...]]:
    """Return the scenario of a run, and its systems with what policies did so far.

    Raises:
        UsageError: The run is of another kind, or a file of it cannot be read.
    """
    scenario = read_run(folder).scenario
    if scenario.elasticity is None:
        raise UsageError(f"{folder}: is of kind {scenario.kind}; its report has the formats html and pdf")
    results = read_policy_results(folder)
    systems = [
        ElasticSystem(system, tuple(each for each in results if each.run.system == system))
        for system in dict.fromkeys(each.run.system for each in results)
    ]
    return scenario, tuple(systems)


def compare_policies(elastic: ElasticSystem) -> PolicyComparison | None:
    """Return the runs of a system's policies in the form of simulated ones; None if nothing was processed."""
    worker_hz = elastic.worker_hz
    runs = [
        PolicyRun(policy.run.policy, policy.live.score, policy.run.decisions)
        for policy in elastic.policies
        if policy.live is not None
    ]
    if worker_hz is None or not runs:
        return None
    longest = max((run.decisions for run in runs), key=len)
    load = [decision.sample.offered[SOURCE] for decision in longest]
    following = Following(elastic.system, longest[0].instances, worker_hz, longest[0].sample.seconds, 0.0, load)
    return PolicyComparison(following, runs)


def summarize_policies(elastic: ElasticSystem) -> str:
    """Return a sentence: which complete run was under target for the shortest time, and which for the longest.

    Times that differ by one interval at most are the same (docs/decisions/0611). It also says what is not complete, and
    why.
    """
    ends = [policy.run.end for policy in elastic.policies if policy.run.is_unsupported and policy.run.end is not None]
    if ends:
        return f"{elastic.system}: {ends[0].reason}."
    scored = sorted(
        (one.live.score.under_target_s, one.live.score.instance_s, one.run.policy)
        for one in elastic.policies
        if one.live is not None and one.run.is_complete
    )
    unfinished = [
        f"{one.run.policy} is not complete{_why(one.run)}" for one in elastic.policies if not one.run.is_complete
    ]
    if not scored:
        return f"{elastic.system}: {'; '.join(unfinished)}."
    (shortest_s, cost, first), (longest_s, last_cost, last) = scored[0], scored[-1]
    text = f"{elastic.system}: {first} was under target for {seconds_text(shortest_s)} at {cost:.0f} worker-seconds"
    if longest_s - shortest_s > max(one.sample.seconds for policy in elastic.policies for one in policy.run.decisions):
        text += f", the shortest time; {last} for {seconds_text(longest_s)} at {last_cost:.0f}, the longest"
    elif others := scored[1:]:
        names = ", ".join(name for _, _, name in others)
        text += f"; {names} for as long, within one interval, at up to {max(cost for _, cost, _ in others):.0f}"
    losing = [one.run.policy for one in elastic.policies if one.measurement is not None and one.measurement.lost]
    lost = f" {', '.join(losing)} lost messages." if losing else " None lost messages." if not unfinished else ""
    return f"{'; '.join([text, *unfinished])}.{lost}"


def _why(run: LivePolicyRun) -> str:
    return f" ({run.end.reason})" if run.end is not None and run.end.reason else ""


def make_policy_rows(elastic: ElasticSystem) -> Iterator[tuple[str, ...]]:
    """Yield the texts of COLUMNS for each policy; an empty text is not known."""
    for policy in elastic.policies:
        yield policy.run.policy, *figure_texts(policy)


def list_changes(policy: PolicyResult) -> Sequence[tuple[str, str, str]]:
    """Return (time, workers before and after, reason) of each change."""
    return [
        (
            seconds_text(decision.sample.at),
            f"{decision.instances} → {sum(decision.plan.parallelism.values())}",
            decision.plan.reason,
        )
        for decision in policy.run.decisions
        if decision.is_change
    ]


def describe_workers(elastic: ElasticSystem) -> str:
    """Return what one worker takes, and how many the highest load needs; empty if nothing was processed."""
    if (rate := elastic.worker_hz) is None:
        return ""
    most = max(needed_workers(one, rate) for policy in elastic.policies for one in policy.run.decisions)
    return f"A worker takes {rate:.3g} messages/s; the highest load needs {most}."


def describe_load(scenario: Scenario) -> str:
    """Return a sentence about load and workers; it says where workers were throttled."""
    elasticity, grid = scenario.elasticity, scenario.grid
    if elasticity is None:
        return ""
    size, cost = size_text(int(grid.message_size[0])), seconds_text(float(grid.cpu_cost[0]))
    text = f"Messages of {size} that cost {cost} each, for {seconds_text(elasticity.seconds)}"
    text += f"; a decision every {seconds_text(float(elasticity.interval))}, {elasticity.most} workers at most."
    if elasticity.duty < 1:
        text += (
            f" Workers were throttled: they burnt {float(elasticity.duty):.0%} of the cost and slept for the rest, so"
            " that nothing here is about CPU."
        )
    return text
