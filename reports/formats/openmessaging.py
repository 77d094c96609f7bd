"""Results of the OpenMessaging Benchmark: written from our runs for its tools, and read as runs that nobody goes on with.

A result file is one object: names, a message size, and lists with a value for every 10 s; latencies are in milliseconds. It knows
one rate and no search, so what is read from it is a bound: "at least" the rate that its consumers followed, or "at most" the rate
that was published where they did not. Names of the fields: openmessaging/benchmark, TestResult.
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

STEP = 10.0
"""Seconds between two values of a list."""
MAX_BYTES = 64 * 2**20
FRAMEWORK = "openmessaging"
UNCOUNTED = "the OpenMessaging Benchmark counts neither loss nor duplicates"


class Foreign(Struct, frozen=True):
    """What we read of a result file; it may hold more."""

    workload: str
    driver: str
    message_size: int = msgspec.field(name="messageSize")
    published: list[float] = msgspec.field(name="publishRate")
    consumed: list[float] = msgspec.field(name="consumeRate")
    p50: float | None = msgspec.field(name="aggregatedEndToEndLatency50pct", default=None)
    p99: float | None = msgspec.field(name="aggregatedEndToEndLatency99pct", default=None)
    most: float | None = msgspec.field(name="aggregatedEndToEndLatencyMax", default=None)


def read(files: Sequence[Path], out: Path, command: str) -> Path:
    """The folder of a new run with a cell for each result file; UsageError, one line, when a file is not as it should be."""
    found: dict[Cell, tuple[Path, Foreign]] = {}
    for path in files:
        foreign = _foreign(path)
        cell = Cell(FRAMEWORK, _slug(foreign.driver), foreign.message_size, 0.0)
        if cell in found:
            cell = Cell(FRAMEWORK, _slug(f"{foreign.driver}-{foreign.workload}"), foreign.message_size, 0.0)
        if cell in found:
            raise UsageError(
                f"{path}: has the driver, workload and message size of {found[cell][0]}; import it by itself"
            )
        found[cell] = path, foreign
    if not found:
        raise UsageError("no file to import; give result files of the OpenMessaging Benchmark")
    return _stored(found, out, command)


def _foreign(path: Path) -> Foreign:
    """A result file, read strictly where we read it."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path}: {path.stat().st_size / 1e6:.0f} MB is too long for a result file; at most 64 MB")
        foreign = msgspec.json.decode(path.read_bytes(), type=Foreign)
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror}; give a result file of the OpenMessaging Benchmark") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path}: is no result file of the OpenMessaging Benchmark ({problem})") from None
    wrong = _mistake(foreign)
    if wrong is not None:
        raise UsageError(f"{path}: {wrong}")
    return foreign


def _mistake(foreign: Foreign) -> str | None:
    """What cannot be right about a result."""
    published, consumed = foreign.published, foreign.consumed
    if not 1 <= foreign.message_size <= 10**9:
        return f"messageSize {foreign.message_size} is no size from 1 B to 1 GB"
    if not published or len(published) != len(consumed):
        return f"publishRate has {len(published)} values and consumeRate {len(consumed)}; as many of both are needed, and one at least"
    if not all(math.isfinite(rate) and 0 <= rate < 1e12 for rate in (*published, *consumed)):
        return "a rate is negative or not a number"
    if sum(published) == 0:
        return "nothing was published"
    quantiles = [value for value in (foreign.p50, foreign.p99, foreign.most) if value is not None]
    if any(value < 0 for value in quantiles) or quantiles != sorted(quantiles):
        return "its end-to-end latencies contradict themselves (negative, or p50 above p99 above the maximum)"
    return None


def _stored(found: dict[Cell, tuple[Path, Foreign]], out: Path, command: str) -> Path:
    """The run, written as if it had been measured here; its facts say that it was not."""
    sizes = tuple(MessageSize(size) for size in sorted({cell.message_bytes for cell in found}))
    systems = tuple(dict.fromkeys(cell.system for cell in found))
    scenario = Scenario(
        "imported", systems, Grid(sizes, (Seconds(0),)), title="Imported from the OpenMessaging Benchmark"
    )
    store = RunFolder.create(out, "imported")
    store.open(scenario, Site("unknown"), {"imported": [path.name for path, _ in found.values()], "command": command})
    try:
        for cell, (_, foreign) in found.items():
            seen = measurement_of(foreign)
            store.add(cell, seen)
            store.save_result(cell, _result_of(cell, seen))
    finally:
        store.close()
    return store.folder


def measurement_of(foreign: Foreign) -> Measurement:
    """What a result saw, as one trial at its mean rate."""
    offered = [round(STEP * total) for total in accumulate(foreign.published)]
    taken = [
        round(STEP * total) for total in accumulate(foreign.consumed)
    ]  # of several subscriptions there may be more
    processed = [min(pair) for pair in zip(offered, taken, strict=True)]
    window = STEP * len(offered)
    left = (offered[-1] - processed[-1]) / max(1, offered[-1])
    seconds = [None if ms is None else ms / 1000 for ms in (foreign.p50, None, foreign.p99, foreign.most)]
    return Measurement(
        PlannedTrial(0, offered[-1] / window, 0.0, window, "search"), now_text(), "complete", 0.0, window,
        offered=offered[-1], sent=offered[-1], failed=0, processed=processed[-1], lost=0, duplicated=0, out_of_order=0, corrupted=0,
        drained=left < 0.02, late=0.0, blocked=0.0, cpu_requested_s=0.0, cpu_used_s=0.0, from_sent=Latency(*seconds), note=UNCOUNTED,
        series=Series([STEP * (n + 1) for n in range(len(offered))], offered, offered, processed),
    )  # fmt: skip


def _result_of(cell: Cell, seen: Measurement) -> Result:
    """One rate was tried: it is a bound, from below or from above."""
    verdict, rate = judge(seen, Rules()), seen.planned.rate
    bare = Result(
        cell.system, cell.framework, cell.source, cell.message_bytes, cell.cpu_seconds, "lower-bound",
        trials=1, seconds=seen.seconds, sent=seen.sent, processed=seen.processed,
    )  # fmt: skip
    if verdict.word == "sustained":
        return replace(bare, reason="imported: one rate was tried", estimate_hz=rate, low_hz=rate)
    return replace(bare, status="upper-bound", reason=f"imported: {verdict.why}", high_hz=rate)


def write(run: Path) -> list[Path]:
    """Write omb/*.json: for each cell the sustained trial that its answer rests on, as a result file."""
    run_data = read_run_data(run)
    folder, scenario = run / "omb", run_data.record.scenario
    folder.mkdir(exist_ok=True)
    written = []
    for known in run_data.cells:
        if known.deciding is None or known.deciding.verdict.word != "sustained":
            continue
        said = {"workload": f"{scenario.name} {known.point}", **_object_of(known, known.deciding.seen, scenario)}
        path = folder / f"{known.anchor.removeprefix('cell-')}.json"
        path.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        written.append(path)
    return written


def _object_of(known: CellData, seen: Measurement, scenario: Scenario) -> dict[str, object]:
    """A result object; what we do not know (CPU cost has no field there) is left out rather than set to 0."""
    settings = scenario.settings.get(known.cell.source, {})
    partitions = settings.get("partitions")
    rates = {"publishRate": _rates(seen, "sent"), "consumeRate": _rates(seen, "processed")}
    latency = {"50": seen.from_sent.p50, "90": seen.from_sent.p90, "99": seen.from_sent.p99, "100": seen.from_sent.max}
    quantiles = {name: 1000 * value for name, value in latency.items() if value is not None}
    names = {
        "50": "aggregatedEndToEndLatency50pct",
        "99": "aggregatedEndToEndLatency99pct",
        "100": "aggregatedEndToEndLatencyMax",
    }
    return {
        "driver": known.cell.system,
        "messageSize": known.cell.message_bytes,
        "topics": 1,
        **({"partitions": partitions} if isinstance(partitions, int) else {}),
        "producersPerTopic": scenario.load.workers,
        **rates,
        **{name: quantiles[share] for share, name in names.items() if share in quantiles},
        "aggregatedEndToEndLatencyQuantiles": quantiles,
        "cpuSecondsPerMessage": known.cell.cpu_seconds,
    }


def _rates(seen: Measurement, counter: str) -> list[float]:
    """Messages/s in each whole STEP of the window; over the whole window when it is shorter."""
    begin, window = seen.planned.settle, seen.planned.window
    parts = max(1, int(window / STEP))
    ends = [begin + n * (STEP if parts > 1 else window) for n in range(parts + 1)]
    counts = [_count_at(seen.series, counter, at) for at in ends]
    return [(later - sooner) / (ends[1] - ends[0]) for sooner, later in pairwise(counts)]


def _count_at(series: Series, counter: str, at: float) -> int:
    rows = [count for moment, count in zip(series.at, getattr(series, counter), strict=True) if moment <= at]
    return rows[-1] if rows else 0


def _slug(name: str) -> str:
    """A driver's name as the part of a system's."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")[:60] or "unnamed"


plugin = ReportPlugin(write=write, export=True, read=read)
