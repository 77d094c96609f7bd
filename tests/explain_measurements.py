"""Measurements of `bench explain`: what tracing costs, and whether it names what was planted.

They are verbs of `python -m tests.measurements`. Some limits are planted as root, and one needs a C compiler.
"""

# ruff: noqa: T201  the tables are what it is for
import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import fmean, stdev

from msgspec import Struct

from bench.analysis.stability import assess_stability
from bench.runner.explanation import ExplainedTrial, choose_trial, explain_trial, read_traced_trials
from bench.storage.run_folder import read_results
from reports.data.bottleneck import find_bottleneck
from reports.data.run_data import read_run_data
from tests.measurements import one_trial, run_once
from tests.planted import slow_checkpoints, throttle

MAX_COST = 0.03
"""Share of the maximum rate that tracing may cost."""
T_95 = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131)
"""97.5 % quantiles of Student's t with 1, 2, ... degrees of freedom; the normal one beyond."""
OVERLOAD = 1.2
"""Factor on the maximum rate: enough to keep a system busy, and too little for a trial to be given up as hopeless."""
SETTLE_S, DRAIN_S = 4.0, 2.0
TRACING = """\
name: tracing
title: One cell, with and without traces
systems: [python/kafka]
grid: {message_size: [1 kB], cpu_cost: [100 us]}
search: {strategy: two-counter, precision: 3 %}
"""


Plant = Callable[[Path], AbstractContextManager[Mapping[str, str]]]
"""Plants a limit in the runs of a block, with a folder for its files; gives the variables that these runs need."""


def plant_nothing(_: Path) -> AbstractContextManager[Mapping[str, str]]:
    """Leave it to the scenario."""
    return nullcontext({})


class Situation(Struct, frozen=True, kw_only=True):
    """A limit that is planted in one cell, and what names it."""

    name: str
    scenario: str
    activities: tuple[str, ...]
    """of the critical path; one of them must have the largest share"""
    kinds: tuple[str, ...]
    """bottlenecks that are right without a trace; none where no rule can find it"""
    plant: Plant = plant_nothing
    straggler: str | None = None
    """the end of the name of the worker that must be called a straggler; "" for any"""
    verdicts: tuple[str, ...] = ("overloaded",)
    """that the explained trial may have; idling in a sustained one is no limit, unless too little is sent"""


TWO_WORKERS = (
    "systems: [python/kafka]\ngrid: {message_size: [1 kB], cpu_cost: [5 ms]}\nsettings:\n  python: {processes: 2}\n"
)
SITUATIONS = (
    Situation(
        name="CPU cost",
        scenario="systems: [python/kafka]\ngrid: {message_size: [1 kB], cpu_cost: [5 ms]}\n",
        activities=("processing",),
        kinds=("CPU cost", "framework CPU"),
    ),
    Situation(
        name="generator limited",
        scenario="systems: [python/kafka]\ngrid: {message_size: [1 kB], cpu_cost: [100 us]}\nload: {limit: 500 /s}\n",
        activities=("idle(source)",),
        kinds=("generator",),
        verdicts=("sustained",),
    ),
    Situation(
        name="10 MB messages",
        scenario="systems: [python/kafka]\ngrid: {message_size: [10 MB], cpu_cost: [0 ms]}\n",
        activities=("source-read", "deserialize", "idle(source)"),
        kinds=("broker CPU", "source", "network", "disk", "framework CPU"),
    ),
    Situation(
        name="one partition for two workers",
        scenario=f"{TWO_WORKERS}  kafka: {{partitions: 1}}\n",
        activities=("processing", "idle(source)"),  # one works and the other idles: each has half of the path
        straggler="",
        kinds=("one thread",),
    ),
    Situation(
        name="one straggling worker",
        scenario=TWO_WORKERS,
        plant=lambda folder: throttle(folder, "python-1", 0.3),
        activities=("processing",),
        straggler="1",
        kinds=(),
    ),
    Situation(
        name="slow checkpoint folder",
        scenario="systems: [spark/kafka]\ngrid: {message_size: [1 kB], cpu_cost: [1 ms]}\nsettings:\n"
        "  spark: {batch_interval: 1 s}\n",
        plant=lambda folder: slow_checkpoints(folder, 150),
        activities=("wal-commit", "offset-commit"),
        verdicts=("overloaded", "sustained"),  # batches show their maximum in trials that all are sustained
        kinds=("batches",),
    ),
    Situation(
        name="a broker with a tenth of a core",
        scenario="systems: [python/kafka]\ngrid: {message_size: [10 kB], cpu_cost: [0 ms]}\n",
        plant=lambda folder: throttle(folder, "kafka", 0.1, after=10.0),
        activities=("source-read", "idle(source)"),
        kinds=("broker CPU", "source"),
    ),
)
HEAD = "name: planted\nsearch: {strategy: two-counter, precision: 20 %}\n"


def add_verbs(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verbs to a command line."""
    tracing = verbs.add_parser("tracing", help="overloaded trials with and without traces process the same rate")
    tracing.add_argument("systems", nargs="+")
    tracing.add_argument("--runs", type=int, default=10, help="pairs of runs")
    tracing.add_argument("--seconds", type=float, default=30, help="of a trial")
    tracing.set_defaults(run=measure_tracing)
    names = [situation.name for situation in SITUATIONS]
    planted = verbs.add_parser("planted", help="explain names a limit that was planted")
    planted.add_argument("--runs", type=int, default=10)
    planted.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="SITUATION", help="one of: %(choices)s"
    )
    planted.set_defaults(run=measure_planted)
    for verb in (tracing, planted):
        verb.add_argument("--budget", default="90 s", help="of each search")
        verb.add_argument("--set", nargs="+", default=[], help="changes to the scenario, such as timing.window=1s")


def measure_tracing(asked: argparse.Namespace) -> bool:
    """Compare overloaded trials with and without traces; return True unless tracing certainly costs over MAX_COST.

    A search finds the maximum rate of each system. Then each pair of trials shows what the system processes while more
    is sent, and the CPU time of framework and harness for each message. On a machine whose cores all are in use, as a
    laptop's, the first scatters by 10 %, and the second by 1 %.
    """
    cheap = True
    for system in asked.systems:
        begin = asked.out / f"tracing-{system.replace('/', '-')}"
        changes = [f"systems=[{system}]", *asked.set]
        search = [*changes, f"search.budget={asked.budget}", "trace=false"]
        found = read_results(run_once(begin.with_name(f"{begin.name}-search"), TRACING, search))[0]
        if found.estimate_hz is None:
            print(f"{system}: no maximum rate found: {found.status} {found.reason or ''}")
            return False
        trial = one_trial(OVERLOAD * found.estimate_hz, asked.seconds, SETTLE_S, DRAIN_S)
        pairs = []
        for number in range(asked.runs):
            costs = {}
            for traced in (number % 2 == 0, number % 2 == 1):  # the order changes, so that drift favours neither
                word = "on" if traced else "off"
                out = begin.with_name(f"{begin.name}-{number}-{word}")
                costs[word] = _read_cost(run_once(out, TRACING, [*changes, *trial, f"trace={traced}".lower()]))
            shown = "; ".join(f"{word}: {cost or 'no overloaded trial'}" for word, cost in sorted(costs.items()))
            print(f"{system} pair {number}, traces {shown}", flush=True)
            if costs["on"] and costs["off"]:
                pairs.append((costs["on"], costs["off"]))
        rate = interval_of([on.processed_hz / off.processed_hz for on, off in pairs])
        cpu = interval_of([on.cpu_s / off.cpu_s for on, off in pairs])
        for name, (low, middle, high) in (("rate", rate), ("CPU time a message", cpu)):
            print(f"{system}: ratio of the {name} {middle:.4f} [{low:.4f} .. {high:.4f}], 95 %, {len(pairs)} pairs")
        cheap &= bool(pairs) and rate[2] >= 1 - MAX_COST and cpu[0] <= 1 + MAX_COST
    return cheap


class TrialCost(Struct, frozen=True):
    """The rate in messages/s that a system processes while more is sent, and the CPU time of a message."""

    processed_hz: float
    cpu_s: float
    """of framework and harness"""

    def __str__(self) -> str:
        return f"{self.processed_hz:.4g}/s, {self.cpu_s * 1e6:.4g} µs of CPU time"


def _read_cost(folder: Path) -> TrialCost | None:
    """Return what the overloaded trial of a run's cell cost; None if it had none."""
    for trial in read_run_data(folder).cells[0].trials:
        measurement = trial.measurement
        if measurement.planned.purpose == "search" and trial.verdict.word == "overloaded":
            rate = measurement.planned.rate * (1 - assess_stability(measurement).loss)
            cpu = measurement.cpu
            return TrialCost(rate, (cpu["framework"] + cpu["harness"]) / cpu["seconds"] / rate)
    return None


def interval_of(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean of ratios between the ends of its 95 % interval; nan and inf where nothing is known."""
    logs = [math.log(ratio) for ratio in ratios]
    if len(logs) < 2:
        return 0.0, math.exp(logs[0]) if logs else math.nan, math.inf
    quantile = T_95[len(logs) - 2] if len(logs) - 2 < len(T_95) else 1.96
    middle, error = fmean(logs), quantile * stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle - error), math.exp(middle), math.exp(middle + error)


def measure_planted(asked: argparse.Namespace) -> bool:
    """Plant each limit; return True if the explanation names it in nine of ten runs each."""
    right = True
    for situation in (one for one in SITUATIONS if one.name in asked.only):
        named, by_rule, found = 0, 0, list[str]()
        for number in range(asked.runs):
            out = asked.out / f"planted-{situation.name.replace(' ', '-')}-{number}"
            changes = ["trace=true", f"search.budget={asked.budget}", *asked.set]
            with situation.plant(out) as variables:
                folder = run_once(out, HEAD + situation.scenario, changes, variables)
            explained = next(_explain(folder), None)
            verdict, top = _read_top(explained)
            straggler = explained.explanation.straggler if explained is not None else None
            found.append(f"{top} ({verdict}{f', {straggler} alone' if straggler else ''})")
            named += _is_named(situation, verdict, top, straggler)
            by_rule += _kind_without_trace(folder) in situation.kinds
        shown = ", ".join(f"{found.count(each)} {each}" for each in dict.fromkeys(found))
        rule = f"the rule in {by_rule}" if situation.kinds else "no rule without a trace is for it"
        print(f"{situation.name}: explain is right in {named} of {asked.runs} ({shown}), {rule}")
        right &= 10 * named >= 9 * asked.runs
    return right


def _is_named(situation: Situation, verdict: str, top: str, straggler: str | None) -> bool:
    if situation.straggler is not None and (straggler is None or not straggler.endswith(situation.straggler)):
        return False
    return verdict in situation.verdicts and top in situation.activities


def _explain(folder: Path) -> Iterator[ExplainedTrial]:
    for trials in read_traced_trials(folder).values():
        chosen = choose_trial(trials)
        if chosen is not None:
            yield explain_trial(folder, chosen)


def _read_top(explained: ExplainedTrial | None) -> tuple[str, str]:
    """Return the verdict of the explained trial, and the activity with the largest share of its critical path."""
    if explained is None:
        return "no trial", "no trace"
    return explained.trial.verdict.word, next(iter(explained.explanation.shares), "no path")


def _kind_without_trace(folder: Path) -> str:
    """Return the bottleneck of a run's only cell by CPU shares and batch times alone."""
    run_data = read_run_data(folder)
    vars(run_data)["explained"] = {}  # as if it had no trace
    bottleneck = find_bottleneck(run_data, run_data.cells[0])
    return bottleneck.kind if bottleneck is not None else "none"
