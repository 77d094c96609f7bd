"""Invented runs of any size, to look at and to test reports: `python -m sample_runs DIR SYSTEMS SIZES COSTS TRIALS`."""

import atexit
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.config.scenario import Grid, Scenario
from bench.config.site import Site
from bench.model.cell import Cell
from bench.model.measurement import Latency, Measurement, PlannedTrial, Purpose, Result, Series
from bench.model.message_sizes import MessageSize
from bench.storage.run_folder import RunFolder
from bench.units import Seconds

BATCH_INTERVALS = {"spark/tcp": 1.0, "spark/files": 1.0, "spark/kafka": 1.0}
THROUGHPUTS = {
    "spark/tcp": (62e3, 180e6),
    "spark/files": (55.0, 40e6),
    "spark/kafka": (88e3, 95e6),
    "python/kafka": (205e3, 260e6),
}
"""Messages/s and bytes/s that each system processes, about as measured on two cores."""
FACTS = {
    "cores": 2, "memory_bytes": 25_000_000_000, "kernel": "Linux 6.1", "cpu": "AMD EPYC 7B13", "python": "3.11.14",
    "java": 'openjdk version "17.0.17" 2025-10-21', "versions": {"pyspark": "4.2.0", "kafka-python": "3.0.12"},
    "revision": "46cef34a1b2c", "command": "bench run scenarios/quick.yaml", "clock_source": "tsc", "moon": "waning",
}  # fmt: skip


def simulated_capacity(cell: Cell) -> float:
    """Return a plausible maximum sustainable throughput in messages/s."""
    messages, volume = THROUGHPUTS.get(cell.system, (40e3, 150e6))
    rate = 1 / (1 / messages + cell.message_bytes / volume)
    return min(rate, 0.97 * 2 / cell.cpu_seconds) if cell.cpu_seconds else rate


def make_measurement(
    number: int, rate: float, capacity: float, purpose: Purpose = "search", batch: float = 0.0, cost: float = 0.0,
    **changes: Any,
) -> Measurement:  # fmt: skip
    """Return a trial's measurement: the system processes at most `capacity` messages/s, every `batch` seconds.

    A message costs `cost` CPU seconds.
    """
    settle, window, step = 2.0, 10.0, 0.25
    at = [step * n for n in range(1, int((settle + window) / step) + 1)]
    reported = [t - t % batch if batch else t for t in at]
    offered = [int(rate * t) for t in at]
    processed = [
        int(min(rate, capacity) * max(0.0, t - batch / 3)) if batch else int(min(rate, capacity) * t) for t in reported
    ]
    sustained = rate <= capacity
    last = processed[-1] if not sustained else offered[-1]
    if sustained:
        at, offered, processed = [*at, at[-1] + 1], [*offered, last], [*processed, last]
    p50 = (0.6 * batch or 0.004) if sustained else 2.5
    fields: dict[str, Any] = {
        "planned": PlannedTrial(number, rate, settle, window, purpose), "started": "2026-05-04T10:00:00Z",
        "batch_interval": batch,
        "ended": "complete" if sustained else "hopeless", "seconds": 13.0 if sustained else 9.5, "offered": offered[-1],
        "sent": last, "failed": 0, "processed": last, "lost": 0, "duplicated": 0, "out_of_order": 0, "corrupted": 0,
        "drained": sustained, "late": 0.001, "blocked": 0.0, "cpu_requested_s": cost * last,
        "cpu_used_s": 1.002 * cost * last,
        "from_due": Latency(p50, 1.6 * p50, 2.1 * p50, 2.6 * p50),
        "from_sent": Latency(p50, 1.6 * p50, 2 * p50, 2.5 * p50),
        "cpu": {
            "framework": 18.9, "source": 0.5, "load": 0.3, "harness": 0.1, "busy": 19.9, "steal": 0.1, "available": 20.0
        },
        "memory": {"framework": 6.1e8, "source": 8e8, "load": 1.1e8, "harness": 9e7},
        "usage": {"source": {"sent_bytes": 3.1e8, "received_bytes": 3e8, "read_bytes": 0.0, "written_bytes": 3e8}},
        "series": Series(at, offered, offered, processed),
    }  # fmt: skip
    return Measurement(**(fields | changes))


def make_trials(cell: Cell, count: int = 6) -> list[Measurement]:
    """Return the trials of a search that ends with a confirmed rate."""
    capacity, batch = simulated_capacity(cell), BATCH_INTERVALS.get(cell.system, 0.0)
    factors = [0.5, 1.6, 0.9, 1.3, 0.97, 1.03, 1.1, 0.8][: count - 1]
    trials = [
        make_measurement(n, f * capacity, capacity, "search" if n else "warm-up", batch, cell.cpu_seconds)
        for n, f in enumerate(factors)
    ]
    return [*trials, make_measurement(len(trials), 0.97 * capacity, capacity, "confirm", batch, cell.cpu_seconds)]


def make_result(cell: Cell, status: str = "measured", **changes: Any) -> Result:
    """Return a result near the cell's capacity."""
    top = simulated_capacity(cell)
    rated = {"estimate_hz": top, "low_hz": 0.97 * top, "high_hz": 1.03 * top, "confirmed_hz": 0.97 * top}
    rated |= {"interval": "95 %", "precision_reached": True}
    if cell.system in BATCH_INTERVALS:
        rated |= {"growing_hz": 1.2 * top}
    bounds: dict[str, dict[str, Any]] = {
        "measured": rated,
        "lower-bound": {
            "estimate_hz": 0.97 * top, "low_hz": 0.97 * top, "confirmed_hz": 0.97 * top, "reason": "generator",
            "limited_by": "generator",
        },
        "upper-bound": {"high_hz": 0.5 * top, "reason": "overloaded at 10 /s, the lowest rate tried: backlog grew"},
        "unstable": {"low_hz": 0.8 * top, "high_hz": top, "reason": "trials disagree"},
        "failed": {"reason": "the framework died 2 times: java.lang.OutOfMemoryError"},
        "unsupported": {"reason": "the socket receiver reads lines"},
        "not-measured": {"reason": "other work"},
    }  # fmt: skip
    bound = 2 / cell.cpu_seconds if cell.cpu_seconds else None
    always: dict[str, Any] = {"bound_hz": bound, "bound": "cpu" if bound else None, "sizes": cell.sizes}
    always |= {"trials": 6, "seconds": 70.0, "sent": 9, "processed": 9}
    quick = {"latency_s": Latency(0.6, 0.9, 1.2, 1.4), "cpu_share": {"framework": 1.42, "source": 0.2}}
    more = always | (quick if status == "measured" else {}) | bounds[status] | changes
    return Result(cell.system, cell.framework, cell.source, cell.message_bytes, cell.cpu_seconds, status, **more)  # type: ignore[arg-type]  # a status as str


STATUSES = {
    ("spark/tcp", 1_000_000, 0.0): "upper-bound",
    ("spark/tcp", 1_000_000, 0.01): "unsupported",
    ("spark/files", 100, 0.0): "unstable",
    ("spark/files", 100, 0.01): "failed",
    ("python/kafka", 100, 0.0): "lower-bound",
    ("spark/kafka", 10_000, 0.01): "not-measured",
}
QUICK = Scenario(
    name="quick",
    title="A first map of Spark and its sources",
    systems=("spark/tcp", "spark/files", "spark/kafka", "python/kafka"),
    grid=Grid((MessageSize(100), MessageSize(10_000), MessageSize(1_000_000)), (Seconds(0), Seconds(0.01))),
)
SMALL = replace(
    QUICK,
    systems=("spark/tcp", "python/kafka"),
    grid=Grid((MessageSize(100), MessageSize(1_000_000)), QUICK.grid.cpu_cost),
)
"""Eight cells, of which there is every kind of figure."""
MIXED_SIZE = MessageSize.read({"choice": {"100 B": "90 %", "10 kB": "10 %"}})
MIXED = replace(QUICK, systems=("python/kafka",), grid=Grid((MessageSize(100), MIXED_SIZE)))
UNFINISHED = Cell("python", "kafka", 1_000_000, 0.01)


def make_run(
    folder: Path, scenario: Scenario = QUICK, *, unfinished: Iterable[Cell] = (UNFINISHED,), trials: int = 6
) -> Path:
    """Write a run folder with every status, and with cells that are not finished; return it."""
    if scenario is not QUICK:
        return write_run(folder, scenario, frozenset(unfinished), trials)
    return Path(shutil.copytree(make_template(frozenset(unfinished), trials), folder))


@cache
def make_template(unfinished: frozenset[Cell], trials: int) -> Path:
    """Write a run of the scenario QUICK once, to be copied by every test of this process; return its folder."""
    parent = tempfile.mkdtemp(prefix="sample-run-")
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    return write_run(Path(parent) / "run", QUICK, unfinished, trials)


def write_run(folder: Path, scenario: Scenario, unfinished: frozenset[Cell], trials: int) -> Path:
    """Write a run folder; return it."""
    with open_run_folder(folder, scenario) as store:
        for cell in scenario.cells():
            if cell in unfinished:
                continue
            status = status_of(cell)
            for trial in make_trials(cell, trials) if status != "unsupported" else ():
                store.add(cell, trial)
            store.save_result(cell, make_result(cell, status))
    return folder


def status_of(cell: Cell) -> str:
    """Return the status of a finished cell."""
    return STATUSES.get((cell.system, cell.message_bytes, cell.cpu_seconds), "measured")


@contextmanager
def open_run_folder(folder: Path, scenario: Scenario, **facts: Any) -> Iterator[RunFolder]:
    """Yield a new run folder that is open for writing."""
    folder.mkdir()
    with RunFolder(folder).open(scenario, Site(), FACTS | facts) as store:
        yield store


def make_single_scenario(cell: Cell) -> Scenario:
    """Return a scenario of one cell."""
    grid = Grid((MessageSize(cell.message_bytes),), (Seconds(cell.cpu_seconds),))
    return replace(QUICK, systems=(cell.system,), grid=grid)


def make_large_scenario(systems: int, sizes: int, costs: int) -> Scenario:
    """Return a scenario with that many systems, sizes from 100 B to 10 MB, and CPU costs from 0 to 0.1 s."""
    names = (
        *QUICK.systems,
        "spark/pulsar",
        "harmonicio/stream",
        *(f"system-{number}/kafka" for number in range(7, 100)),
    )
    chosen = tuple(MessageSize(round(100 * 1e5 ** (n / max(1, sizes - 1)))) for n in range(sizes))
    spent = (Seconds(0), *(Seconds(round(1e-4 * 1e3 ** (n / max(1, costs - 2)), 7)) for n in range(costs - 1)))
    return Scenario(
        name="make_large_scenario", title="An invented run", systems=names[:systems], grid=Grid(chosen, spent)
    )


if __name__ == "__main__":
    make_run(
        Path(sys.argv[1]),
        make_large_scenario(*(int(word) for word in sys.argv[2:5])),
        unfinished=(),
        trials=int(sys.argv[5]),
    )
