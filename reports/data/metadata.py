"""What was measured, by which rules, on what, and how to repeat it: pairs of a label and a text, in the order of interest."""

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from bench.config.scenario import Scenario
from bench.model.cell import Cell
from bench.units import Seconds, exact_text, rate_text, seconds_text, size_text
from reports.data.run_data import CellData, RunData

Pairs = list[tuple[str, str]]
LABELS = {
    "cpu": "Processor", "cores": "Cores", "memory_bytes": "Memory", "kernel": "Kernel", "clock_source": "Clock",
    "python": "Python", "java": "Java", "revision": "Revision", "command": "Command",
}  # fmt: skip
REPEAT = ("command", "revision")


def subject_of(run_data: RunData) -> Pairs:
    """What was compared, and by which rules."""
    scenario = run_data.record.scenario
    finished = len(run_data.cells) - len(run_data.missing)
    trials = [judged.seen for known in run_data.cells for judged in known.trials]
    spent = seconds_text(sum(seen.seconds for seen in trials))
    what = [
        ("Scenario", scenario.name),
        ("Systems", ", ".join(run_data.systems)),
        ("Message sizes", "; ".join(dict.fromkeys(_size_text(known.cell) for known in run_data.cells))),
    ]
    if run_data.imported:
        return [*what, ("Measured", f"by another tool, which did not count losses; {len(run_data.cells)} files")]
    return [
        *what,
        ("CPU costs", ", ".join(seconds_text(cost) for cost in run_data.costs)),
        ("Load", _load_text(scenario)),
        ("Search", _search_text(scenario)),
        ("Asked for", _objectives_text(scenario)),
        *((f"Settings of {room}", _listed(settings)) for room, settings in sorted(scenario.settings.items())),
        ("Measured", f"{finished} of {len(run_data.cells)} cells, {len(trials)} trials, {spent}"),
        ("Started", run_data.record.started),
    ]


def _load_text(scenario: Scenario) -> str:
    load = scenario.load
    senders = f", {load.workers} sender{'s' if load.workers > 1 else ''}"
    limit = f", slowed on purpose to {rate_text(load.limit)}" if load.limit is not None else ""
    return f"open loop, {load.arrivals} arrivals, by {load.by}{senders}, entropy {float(load.entropy):g}{limit}"


def _search_text(scenario: Scenario) -> str:
    search = scenario.search
    return (
        f"{search.strategy}, to within {100 * search.precision:g} %, at most {seconds_text(search.budget)} for a cell"
    )


def _objectives_text(scenario: Scenario) -> str:
    wanted = [
        f"no more than {scenario.objectives.loss} messages lost" if scenario.objectives.loss else "no message lost"
    ]
    if scenario.objectives.p99 is not None:
        wanted.append(f"p99 latency at most {seconds_text(scenario.objectives.p99)}")
    return ", ".join(["a backlog that does not grow", *wanted])


def machine_of(run_data: RunData) -> Pairs:
    """On what it was measured: what the run knows of its machine, the well-known facts first, the rest as they are called."""
    facts = run_data.record.facts
    known = [name for name in LABELS if name in facts and name not in REPEAT]
    rest = sorted(name for name in facts if name not in LABELS and name != "versions")
    pairs = [
        (LABELS.get(name, name), _fact_text(name, facts[name])) for name in (*known, *rest) if facts[name] is not None
    ]
    if facts.get("versions"):
        pairs.append(("Versions", _fact_text("versions", facts["versions"])))
    site = run_data.record.site
    return [("Site", site.name), *pairs]


def repeat_of(run_data: RunData) -> Pairs:
    """How to repeat it."""
    facts = run_data.record.facts
    return [(LABELS[name], str(facts[name])) for name in REPEAT if facts.get(name)]


def repeat_cell(run_data: RunData, known: CellData) -> str:
    """The command that measures one cell again; empty when the run does not say how it was made."""
    words = shlex.split(str(run_data.record.facts.get("command") or ""))
    if words[:2] != ["bench", "run"] or len(words) < 3:
        return ""
    resumed = {n + offset for n, word in enumerate(words) if word == "--resume" for offset in (0, 1)}
    cell, cached_resource = (
        known.cell,
        [word for n, word in enumerate(words) if n not in resumed and not word.startswith("--resume=")],
    )
    chosen = (
        f"systems={cell.system}",
        f"grid.message_size={f'{cell.message_bytes}B' if cell.sizes is None else json.dumps(cell.sizes.written)}",
        f"grid.cpu_cost={exact_text(Seconds(cell.cpu_seconds))}",
    )
    return shlex.join([*cached_resource, *(word for one in chosen for word in ("--set", one.replace(" ", "")))])


def _size_text(cell: Cell) -> str:
    return (
        size_text(cell.message_bytes)
        if cell.sizes is None
        else f"{cell.sizes.text} (mean {size_text(cell.message_bytes)})"
    )


def _fact_text(name: str, fact: Any) -> str:
    if name.endswith("_bytes") and isinstance(fact, int | float):
        return size_text(fact)
    if isinstance(fact, Mapping):
        return _listed(fact)
    if isinstance(fact, Iterable) and not isinstance(fact, str):
        return ", ".join(str(one) for one in fact)
    return str(fact)


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())
