"""Result files of the OpenMessaging Benchmark: written from our runs, and imported as runs that cannot be resumed.

A result file is one object: names, a message size, and lists with a value for every 10 s; latencies are in
milliseconds. It has one rate and no search, so an imported cell is a bound: "at least" the published rate if the
consumers kept up with it, else "at most". Their consumeRate counts each subscription's messages, and so does their
backlog, so that consumers may lag behind although they consume more than is published. Names of the fields:
openmessaging/benchmark, TestResult; cpuSecondsPerMessage is ours.
"""

import json
import math
import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.verdict import Rules, judge
from bench.config.scenario import Grid, Scenario
from bench.config.site import Site
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Latency, Measurement, PlannedTrial, Result, Series
from bench.model.message_sizes import MessageSize
from bench.plugins.plugin import ReportPlugin
from bench.storage.run_folder import RunFolder, now_text
from bench.units import Seconds
from reports.data.run_data import CellData, read_run_data

STEP_S = 10.0
"""Between two values of a list."""
MAX_BYTES = 64 * 2**20
FRAMEWORK = "openmessaging"
MAX_CPU_S = 3600.0
MAX_CONSUMED = 1.05
"""Messages consumed, as a multiple of those published, that one subscription explains: it also reads what was there
before."""
UNCOUNTED = "the OpenMessaging Benchmark counts neither loss nor duplicates"


class ForeignResult(Struct, frozen=True):
    """The fields that we read of a result file; it may have more."""

    workload: str
    driver: str
    message_size: int = msgspec.field(name="messageSize")
    published: list[float] = msgspec.field(name="publishRate")
    consumed: list[float] = msgspec.field(name="consumeRate")
    backlog: list[float] = []
    """messages not yet consumed, at the end of each step; empty where the file has none"""
    cpu_seconds: float = msgspec.field(name="cpuSecondsPerMessage", default=0.0)
    p50: float | None = msgspec.field(name="aggregatedEndToEndLatency50pct", default=None)
    p99: float | None = msgspec.field(name="aggregatedEndToEndLatency99pct", default=None)
    most: float | None = msgspec.field(name="aggregatedEndToEndLatencyMax", default=None)


def read(files: Sequence[Path], out: Path, command: str) -> Path:
    """Import result files as a new run with a cell for each file; return its folder.

    Args:
        files: result files.
        out: parent of the new run folder.
        command: the command line, for the run's record.

    Raises:
        UsageError: a file is not a valid result file, or two files have the same cell.
    """
    imported: dict[Cell, tuple[Path, ForeignResult]] = {}
    for path in files:
        foreign = _read_foreign(path)
        cell = Cell(FRAMEWORK, _slugify(foreign.driver), foreign.message_size, foreign.cpu_seconds)
        if cell in imported:
            source = _slugify(f"{foreign.driver}-{foreign.workload}")
            cell = Cell(FRAMEWORK, source, foreign.message_size, foreign.cpu_seconds)
        if cell in imported:
            raise UsageError(
                f"{path}: has the driver, workload and message size of {imported[cell][0]}; import it by itself"
            )
        imported[cell] = path, foreign
    if not imported:
        raise UsageError("no file to import; give result files of the OpenMessaging Benchmark")
    return _store(imported, out, command)


def _read_foreign(path: Path) -> ForeignResult:
    """Read and check a result file."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path}: {path.stat().st_size / 1e6:.0f} MB is too long for a result file; at most 64 MB")
        foreign = msgspec.json.decode(path.read_bytes(), type=ForeignResult)
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror}; give a result file of the OpenMessaging Benchmark") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path}: is no result file of the OpenMessaging Benchmark ({problem})") from None
    wrong = _find_mistake(foreign)
    if wrong is not None:
        raise UsageError(f"{path}: {wrong}")
    return foreign


def _find_mistake(foreign: ForeignResult) -> str | None:
    """Return what is wrong with a result; None if it is valid."""
    published, consumed = foreign.published, foreign.consumed
    if not 1 <= foreign.message_size <= 10**9:
        return f"messageSize {foreign.message_size} is no size from 1 B to 1 GB"
    if not published or len(published) != len(consumed):
        lengths = f"publishRate has {len(published)} values and consumeRate {len(consumed)}"
        return f"{lengths}; as many of both are needed, and one at least"
    if not all(math.isfinite(rate) and 0 <= rate < 1e12 for rate in (*published, *consumed)):
        return "a rate is negative or not a number"
    if round(STEP_S * sum(published)) == 0:
        return "nothing was published: publishRate gives no whole message"
    if not 0 <= foreign.cpu_seconds < MAX_CPU_S:
        return f"cpuSecondsPerMessage {foreign.cpu_seconds} is no time from 0 to {MAX_CPU_S:g} s"
    if foreign.backlog and (len(foreign.backlog) != len(published) or not all(map(math.isfinite, foreign.backlog))):
        return "backlog needs a number for each value of publishRate"
    if not foreign.backlog and sum(consumed) > MAX_CONSUMED * sum(published):
        return (
            "consumeRate is above publishRate, so there were several subscriptions; without backlog nothing says"
            " whether all of them kept up"
        )
    quantiles = [value for value in (foreign.p50, foreign.p99, foreign.most) if value is not None]
    if any(value < 0 for value in quantiles) or quantiles != sorted(quantiles):
        return "its end-to-end latencies contradict themselves (negative, or p50 above p99 above the maximum)"
    return None


def _store(imported: dict[Cell, tuple[Path, ForeignResult]], out: Path, command: str) -> Path:
    """Write the run as if it had been measured here; its facts say that it was imported."""
    sizes = tuple(MessageSize(size) for size in sorted({cell.message_bytes for cell in imported}))
    costs = tuple(Seconds(cost) for cost in sorted({cell.cpu_seconds for cell in imported}))
    systems = tuple(dict.fromkeys(cell.system for cell in imported))
    scenario = Scenario("imported", systems, Grid(sizes, costs), title="Imported from the OpenMessaging Benchmark")
    facts = {"imported": [path.name for path, _ in imported.values()], "command": command}
    with RunFolder.create(out, "imported").open(scenario, Site("unknown"), facts) as store:
        for cell, (_, foreign) in imported.items():
            measurement = make_measurement(foreign)
            store.add(cell, measurement)
            store.save_result(cell, _make_result(cell, measurement))
    return store.folder


def make_measurement(foreign: ForeignResult) -> Measurement:
    """Return a result as the measurement of one trial at its mean rate."""
    offered = [round(STEP_S * total) for total in accumulate(foreign.published)]
    consumed = [round(STEP_S * total) for total in accumulate(foreign.consumed)]
    grown = [max(0, round(left - foreign.backlog[0])) for left in foreign.backlog] or [0] * len(offered)
    processed = [
        max(0, min(total, taken, total - left)) for total, taken, left in zip(offered, consumed, grown, strict=True)
    ]
    window = STEP_S * len(offered)
    left = (offered[-1] - processed[-1]) / max(1, offered[-1])
    seconds = [None if ms is None else ms / 1000 for ms in (foreign.p50, None, foreign.p99, foreign.most)]
    return Measurement(
        PlannedTrial(0, offered[-1] / window, 0.0, window, "search"), now_text(), "complete", 0.0, window,
        offered=offered[-1], sent=offered[-1], failed=0, processed=processed[-1], lost=0, duplicated=0,
        out_of_order=0, corrupted=0,
        drained=left < 0.02, late=0.0, blocked=0.0, cpu_requested_s=0.0, cpu_used_s=0.0, from_sent=Latency(*seconds),
        note=UNCOUNTED,
        series=Series([STEP_S * (n + 1) for n in range(len(offered))], offered, offered, processed),
    )  # fmt: skip


def _make_result(cell: Cell, measurement: Measurement) -> Result:
    """Return the result of one trial: a lower or an upper bound."""
    verdict, rate = judge(measurement, Rules()), measurement.planned.rate
    lower = Result(
        cell.system, cell.framework, cell.source, cell.message_bytes, cell.cpu_seconds, "lower-bound",
        trials=1, seconds=measurement.seconds, sent=measurement.sent, processed=measurement.processed,
    )  # fmt: skip
    if verdict.word == "sustained":
        return replace(lower, reason="imported: one rate was tried", estimate_hz=rate, low_hz=rate)
    return replace(lower, status="upper-bound", reason=f"imported: {verdict.why}", high_hz=rate)


def write(run: Path) -> list[Path]:
    """Write omb/*.json, the sustained deciding trial of each cell of one size as a result file; return the paths."""
    run_data = read_run_data(run)
    folder, scenario = run / "omb", run_data.record.scenario
    folder.mkdir(exist_ok=True)
    written = []
    for cell_data in run_data.cells:
        deciding = cell_data.deciding
        if deciding is None or deciding.verdict.word != "sustained" or cell_data.cell.sizes is not None:
            continue  # a result file has one size
        names = {"workload": f"{scenario.name} {cell_data.point}"}
        path = folder / f"{cell_data.anchor.removeprefix('cell-')}.json"
        content = names | _make_object(cell_data, deciding.measurement, scenario)
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        written.append(path)
    return written


def _make_object(cell_data: CellData, measurement: Measurement, scenario: Scenario) -> dict[str, object]:
    """Return a result object; unknown values are left out, not set to 0."""
    settings = scenario.settings.get(cell_data.cell.source, {})
    partitions = settings.get("partitions")
    rates = {
        "publishRate": _compute_rates(measurement, "sent"),
        "consumeRate": _compute_rates(measurement, "processed"),
    }
    latency = {
        "50": measurement.from_sent.p50,
        "90": measurement.from_sent.p90,
        "99": measurement.from_sent.p99,
        "100": measurement.from_sent.max,
    }
    quantiles = {name: 1000 * value for name, value in latency.items() if value is not None}
    names = {
        "50": "aggregatedEndToEndLatency50pct",
        "99": "aggregatedEndToEndLatency99pct",
        "100": "aggregatedEndToEndLatencyMax",
    }
    return {
        "driver": cell_data.cell.system,
        "messageSize": cell_data.cell.message_bytes,
        "topics": 1,
        **({"partitions": partitions} if isinstance(partitions, int) else {}),
        "producersPerTopic": scenario.load.worker_count,
        **rates,
        "backlog": _count_backlog(measurement),
        **{name: quantiles[share] for share, name in names.items() if share in quantiles},
        "aggregatedEndToEndLatencyQuantiles": quantiles,
        "cpuSecondsPerMessage": cell_data.cell.cpu_seconds,
    }


def _list_ends(measurement: Measurement) -> list[float]:
    """Return the begin of the window and the end of each whole step of it; of the window if it is shorter."""
    begin, window = measurement.planned.settle, measurement.planned.window
    parts = max(1, int(window / STEP_S))
    return [begin + n * (STEP_S if parts > 1 else window) for n in range(parts + 1)]


def _count_backlog(measurement: Measurement) -> list[int]:
    """Return the messages that were sent and not yet processed, at the end of each step."""
    ends, series = _list_ends(measurement)[1:], measurement.series
    return [max(0, _count_at(series, "sent", at) - _count_at(series, "processed", at)) for at in ends]


def _compute_rates(measurement: Measurement, counter: str) -> list[float]:
    """Return messages/s in each step of the window."""
    ends = _list_ends(measurement)
    counts = [_count_at(measurement.series, counter, at) for at in ends]
    return [(after - before) / (ends[1] - ends[0]) for before, after in pairwise(counts)]


def _count_at(series: Series, counter: str, at: float) -> int:
    rows = [count for moment, count in zip(series.at, getattr(series, counter), strict=True) if moment <= at]
    return rows[-1] if rows else 0


def _slugify(name: str) -> str:
    """Return a driver's name in the characters that a system's name may have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")[:60] or "unnamed"


plugin = ReportPlugin(write=write, export=True, read=read)
