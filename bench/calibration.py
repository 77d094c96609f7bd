"""The verb `bench calibrate`: which sources and sizes, and the table of what was measured, line by line as it comes."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from bench import machine, message, rooms
from bench.calibrate import Ceiling, calibrated, write_calibration
from bench.document import Document
from bench.errors import UsageError
from bench.ground import Ground
from bench.process import Supervisor
from bench.reading import changed, read_site, scenario_of
from bench.rooms import check
from bench.scenario import Scenario
from bench.site import Site
from bench.store import Store
from bench.units import rate_text, size_text

CODEC = "message"
_BLOCK_BYTES, _BLOCK_MESSAGES = 4 * 10**6, 4096


class Asked(Struct, frozen=True):
    """What the person asks for."""

    names: list[str]
    against: list[str]
    sizes: str
    runs: int
    seconds: float
    changes: list[str]


def folder_for(out: Path) -> Path:
    """A new folder for the results."""
    return Store.fresh(out, "calibrate").folder


def lines(asked: Asked, folder: Path, site: Path | None, cache: Path, registry: Path) -> Iterator[str]:
    """The table; calibration.json in `folder` is complete after each line. Raises UsageError before anything starts."""
    scenarios = [_scenario(name, asked) for name in asked.names if name != CODEC]
    known = {rival for scenario in scenarios for cell in scenario.cells() for rival in rooms.rivals(cell.source)}
    for name in asked.against:
        if name not in known:
            raise UsageError(f"--against {name}: no such rival of these sources; known: {', '.join(sorted(known)) or 'none'}")
    yield _head(asked.against)
    if CODEC in asked.names:
        yield from (_codec_line(size) for size in (100, 1000, 10_000, 100_000, 1_000_000))
    if not scenarios:
        return
    found: list[Ceiling] = []
    where = read_site(site) if site else Site()
    cores = machine.cores()
    supervisor, workers = Supervisor(registry, folder / "logs"), scenarios[0].load.workers  # all were changed in the same way
    with Ground(where, supervisor, folder / "data", cache, cores=cores, note=_note, workers=workers) as ground:
        for scenario in scenarios:
            cells = scenario.cells()
            for row in calibrated(cells, scenario, ground, against=asked.against, runs=asked.runs, seconds=asked.seconds):
                found += row
                write_calibration(folder, found)
                yield _line(row, asked.against)


def _scenario(name: str, asked: Asked) -> Scenario:
    """One that has the cells to calibrate; its rooms exist and can take them."""
    system = name if "/" in name else f"plain/{name}"
    values: dict[str, object] = {"name": "calibrate", "systems": [system], "grid": {"message_size": asked.sizes.split(",")}}
    document = changed(Document("bench calibrate", values), asked.changes)
    scenario = scenario_of(document)
    check(document, scenario)
    for cell in scenario.cells():
        if not rooms.calibrates(cell.source):
            raise UsageError(f"{cell.source} cannot be calibrated: it has no null reader and does not keep what nobody reads")
        refused = rooms.source(cell.source, scenario.settings).refuses(cell, float(scenario.load.entropy))
        if refused is not None:
            raise UsageError(f"{cell.source} cannot be calibrated with {size_text(cell.message_bytes)}: {refused}")
    return scenario


def _head(against: Sequence[str]) -> str:
    rivals = "".join(f"  {name:>14.14} {'ratio':>6}" for name in against)
    return f"{'source':10} {'size':>8}  {'load':>10} {'':>10}{rivals}"


def _line(row: Sequence[Ceiling], against: Sequence[str]) -> str:
    """The load's median, in messages and bytes a second, and its ratio to each rival's median."""
    by = {ceiling.by: ceiling.hz for ceiling in row}
    size, load = row[0].message_bytes, by["load"]
    rivals = "".join(
        f"  {rate_text(by[name]):>14} {load / by[name]:6.2f}" if by.get(name) else f"  {'–':>14} {'–':>6}" for name in against
    )
    return f"{row[0].source:10} {size_text(size):>8}  {rate_text(load):>10} {_bandwidth(load * size):>10}{rivals}"


def _bandwidth(rate: float) -> str:
    return f"{rate / 1e9:.2f} GB/s" if rate >= 1e9 else f"{rate / 1e6:.3g} MB/s"


def _codec_line(size: int) -> str:
    """How fast the codec writes messages of a size, and reads and verifies them."""
    count = max(1, min(_BLOCK_MESSAGES, _BLOCK_BYTES // size))
    writer, filler = message.Writer(run=1, producer=0, size=size, cost=0.0, entropy=0.75), message.filler(size, 0.75)
    due = np.arange(count, dtype=np.float64)
    written = writer.write(0, due, 0.0)
    writes = count / _median_seconds(lambda: writer.write(0, due, 0.0))
    reads = count / _median_seconds(lambda: message.read(written, size, filler))
    return f"{CODEC:10} {size_text(size):>8}  writes {rate_text(writes):>9}  reads and verifies {rate_text(reads):>9}"


def _median_seconds(work: Callable[[], object], seconds: float = 0.3) -> float:
    """Seconds of the median call within a while."""
    took: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(took) < 3:
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return float(np.median(took))


def _note(text: str) -> None:
    """Progress, where the table does not go."""
    print(text, file=sys.stderr)  # noqa: T201  the verb's own progress line
