"""Metadata of a run as pairs of label and text: the subject, the machine, and the command that repeats it."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from bench.analysis.foreign_work import account_cpu, foreign_share
from bench.config.scenario import Scenario
from bench.model.cell import Cell
from bench.model.measurement import Measurement
from bench.storage.records import RunRecord
from bench.units import Seconds, exact_text, rate_text, seconds_text, size_text
from reports.data.run_data import CellData, RunData

Pairs = list[tuple[str, str]]
LABELS = {
    "cpu": "Processor", "cores": "Cores", "memory_bytes": "Memory", "memory_is_lent": "Memory lent by a host",
    "kernel": "Kernel", "clock_source": "Clock",
    "python": "Python", "java": "Java", "java_options": "Java options", "environments": "Environments",
    "revision": "Revision", "command": "Command",
}  # fmt: skip
REPEAT = ("command", "revision")


def describe_subject(run_data: RunData) -> Pairs:
    """Return what was compared, and by which rules."""
    scenario = run_data.record.scenario
    finished = len(run_data.cells) - len(run_data.missing)
    measurements = [trial.measurement for cell_data in run_data.cells for trial in cell_data.trials]
    spent = seconds_text(sum(measurement.seconds for measurement in measurements))
    grid = [
        ("Scenario", scenario.name),
        ("Systems", ", ".join(run_data.systems)),
        ("Message sizes", "; ".join(dict.fromkeys(_format_size(cell_data.cell) for cell_data in run_data.cells))),
    ]
    if run_data.imported:
        return [*grid, ("Measured", f"by another tool, which did not count losses; {_count_imported(run_data)} files")]
    return [
        *grid,
        ("CPU costs", ", ".join(seconds_text(cost) for cost in run_data.costs)),
        ("Load", _describe_load(scenario)),
        ("Search", _describe_search(scenario)),
        ("Objectives", _describe_objectives(scenario)),
        *_describe_settings(scenario),
        ("Finished", f"{finished} of {len(run_data.cells)} cells; {len(measurements)} trials took {spent}"),
        ("Started", run_data.record.started),
        *_describe_time(run_data.record.started, measurements),
        *_describe_other_work(measurements),
        *_describe_speed(run_data),
    ]


def describe_elasticity(record: RunRecord) -> Pairs:
    """Return what policies were compared on, and by which settings; empty for a run of another kind."""
    scenario, elasticity = record.scenario, record.scenario.elasticity
    if elasticity is None:
        return []
    size, cost = size_text(int(scenario.grid.message_size[0])), seconds_text(float(scenario.grid.cpu_cost[0]))
    burnt = "" if float(elasticity.duty) == 1 else f", {float(elasticity.duty):.0%} of it burnt, the rest slept"
    return [
        ("Scenario", scenario.name),
        ("Systems", ", ".join(scenario.systems)),
        ("Policies", ", ".join(elasticity.policies)),
        ("Messages", f"{size}, {cost} each{burnt}"),
        ("Load", f"{seconds_text(elasticity.seconds)}, {_describe_load(scenario)}"),
        ("Workers", f"{elasticity.start} at the beginning, {elasticity.most} at most"),
        ("Decisions", f"every {seconds_text(float(elasticity.interval))}"),
        *_describe_settings(scenario),
        ("Started", record.started),
    ]


def _count_imported(run_data: RunData) -> int:
    """Return the number of files of another tool that a run was made of."""
    files = run_data.record.facts.get("imported")
    return len(files) if isinstance(files, list) else len(run_data.cells)


def _describe_settings(scenario: Scenario) -> Pairs:
    return [(f"Settings of {plugin}", _join_settings(own)) for plugin, own in sorted(scenario.settings.items())]


def _describe_time(started: str, measurements: Sequence[Measurement]) -> Pairs:
    """Return which share of the time from the run's start to the end of its last trial is windows."""
    timed = [measurement for measurement in measurements if measurement.started]
    if not timed:
        return []
    last = max(timed, key=lambda measurement: measurement.started)
    try:
        wall = (datetime.fromisoformat(last.started) - datetime.fromisoformat(started)).total_seconds() + last.seconds
    except (ValueError, TypeError):  # a time that was edited, or is of no time zone
        return []
    windows = sum(measurement.window_s for measurement in measurements if measurement.planned.purpose != "warm-up")
    if wall < windows:
        return []
    return [("Time", f"{seconds_text(round(wall))}, {windows / wall:.0%} of it in measured windows")]


def _describe_other_work(measurements: Sequence[Measurement]) -> Pairs:
    """Return which share of a machine other work and its hypervisor took while trials were measured, if it is known."""
    known = [(foreign_share(each), each.window_s) for each in measurements if account_cpu(each)]
    seconds = sum(window for _, window in known)
    if not seconds:
        return []
    mean = sum(share * window for share, window in known) / seconds
    took = f"took {mean:.1%} of a machine on average, {max(known)[0]:.0%} in one trial"
    return [("Other work", f"{took}; the more it takes, the wider intervals are")]


def _describe_speed(run_data: RunData) -> Pairs:
    """Return how far the speed of a core changed from visit to visit, if it was measured more than once."""
    if run_data.speed is None or len(run_data.speeds) < 2:
        return []
    shares = [each.cpu / run_data.speed.cpu for each in run_data.speeds]
    changed = f"{min(shares):.2f} to {max(shares):.2f} times its mean"
    measured = f"by a fixed piece of work at {len(shares)} moments"
    return [("Speed of a core", f"{changed}, {measured}; where it changes, so do the systems' rates")]


def _describe_load(scenario: Scenario) -> str:
    load = scenario.load
    senders = f", {load.worker_count} sender{'s' if load.worker_count > 1 else ''}"
    if load.workers is None:
        senders += " (more for a cell that one limits)"
    limit = f", limited on purpose to {rate_text(load.limit)}" if load.limit is not None else ""
    by = f", by {load.by}" if load.by is not None else ""
    return f"open loop, {load.arrivals} arrivals{by}{senders}, entropy {float(load.entropy):g}{limit}"


def _describe_search(scenario: Scenario) -> str:
    search = scenario.search
    whole = f"{seconds_text(search.total)} for all cells" if search.total is not None else ""
    time = whole or f"at most {seconds_text(search.budget)} for a cell"
    return f"{search.strategy}, to within {100 * search.precision:g} %, {time}"


def _describe_objectives(scenario: Scenario) -> str:
    loss, p99 = scenario.objectives.loss, scenario.objectives.p99
    objectives = ["a backlog that does not grow", f"at most {loss} messages lost" if loss else "no message lost"]
    if p99 is not None:
        objectives.append(f"p99 latency at most {seconds_text(p99)}")
    if scenario.objectives.batches == "grow":
        objectives.append("batches may grow beyond their interval")
    return ", ".join(objectives)


def describe_machine(record: RunRecord) -> Pairs:
    """Return what the run recorded of its site and machine, well-known facts first."""
    facts = record.facts
    labelled = [name for name in LABELS if name in facts and name not in REPEAT]
    rest = sorted(name for name in facts if name not in LABELS and name != "versions")
    pairs = [
        (LABELS.get(name, name), _format_fact(name, facts[name]))
        for name in (*labelled, *rest)
        if facts[name] is not None
    ]
    if facts.get("versions"):
        pairs.append(("Versions", _format_fact("versions", facts["versions"])))
    return [("Site", record.site.name), *pairs]


def describe_repetition(record: RunRecord) -> Pairs:
    """Return the command and the revision that repeat the run."""
    facts = record.facts
    return [(LABELS[name], str(facts[name])) for name in REPEAT if facts.get(name)]


def make_cell_command(run_data: RunData, cell_data: CellData) -> str:
    """Return the command that measures one cell again; empty if the run did not record its own."""
    words = shlex.split(str(run_data.record.facts.get("command") or ""))
    if words[:2] != ["bench", "run"] or len(words) < 3:
        return ""
    cell = cell_data.cell
    resumed = {n + offset for n, word in enumerate(words) if word == "--resume" for offset in (0, 1)}
    command = [word for n, word in enumerate(words) if n not in resumed and not word.startswith("--resume=")]
    changes = (
        f"systems={cell.system}",
        f"grid.message_size={f'{cell.message_bytes}B' if cell.sizes is None else json.dumps(cell.sizes.written)}",
        f"grid.cpu_cost={exact_text(Seconds(cell.cpu_seconds))}",
    )
    return shlex.join([*command, *(word for change in changes for word in ("--set", change.replace(" ", "")))])


def _format_size(cell: Cell) -> str:
    mean = size_text(cell.message_bytes)
    return mean if cell.sizes is None else f"{cell.sizes.text} (mean {mean})"


def _format_fact(name: str, fact: Any) -> str:
    if name.endswith("_bytes") and isinstance(fact, int | float):
        return size_text(fact)
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, Mapping):
        return _join_settings(fact)
    if isinstance(fact, Iterable) and not isinstance(fact, str):
        return ", ".join(str(one) for one in fact)
    return str(fact)


def _join_settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())
