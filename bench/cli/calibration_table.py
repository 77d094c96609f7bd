"""The verb `bench calibrate`: which sources and sizes, and the table of what was measured, line by line as it comes."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from bench.calibration.generator_ceiling import CONSTANT, Ceiling, calibrated, write_calibration
from bench.calibration.rate_accuracy import Offered, offered_rates, write_offered
from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.config.validation import apply_changes, apply_site, parse_scenario, read_site
from bench.config.yaml_document import Document
from bench.errors import UsageError
from bench.model import message_codec
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.registry import check
from bench.runner.deployment import no_keys
from bench.storage.run_folder import RunFolder
from bench.system import host_info
from bench.system.supervisor import Supervisor
from bench.units import rate_text, seconds_text, size_text

CODEC = "message"
_OFFERED_HEAD = f"{'source':10} {'size':>8}  {'asked':>10}  {'sent':>17}  {'error':>10}  {'late':>8}"
_BLOCK_BYTES, _BLOCK_MESSAGES = 4 * 10**6, 4096


class Asked(Struct, frozen=True):
    """What the person asks for."""

    names: list[str]
    against: list[str]
    sizes: str
    runs: int
    seconds: float
    changes: list[str]
    offered: bool = False
    """whether to measure how truly rates are kept, instead of the highest rate"""


def folder_for(out: Path) -> Path:
    """A new folder for the results."""
    return RunFolder.fresh(out, "calibrate").folder


def lines(asked: Asked, folder: Path, site: Path | None, cache: Path, children: Path) -> Iterator[str]:
    """The table; calibration.json in `folder` is complete after each line. Raises UsageError before anything starts."""
    where = read_site(site) if site else Site()
    scenarios = [apply_site(_scenario(name, asked), where) for name in asked.names if name != CODEC]
    known = {
        baseline for scenario in scenarios for cell in scenario.cells() for baseline in registry.baselines(cell.source)
    }
    known |= {CONSTANT} if scenarios else set()
    for name in asked.against:
        if name not in known:
            raise UsageError(
                f"--against {name}: no such rival of these sources; known: {', '.join(sorted(known)) or 'none'}"
            )
    yield _OFFERED_HEAD if asked.offered else _head(asked.against)
    if CODEC in asked.names:
        yield from (_codec_line(size) for size in (100, 1000, 10_000, 100_000, 1_000_000))
    if not scenarios:
        return
    cores = host_info.cores()
    supervisor, workers = (
        Supervisor(children, folder / "logs"),
        scenarios[0].load.workers,
    )  # all were changed in the same way
    with RunEnvironment(where, supervisor, folder / "data", cache, cores=cores, note=_note, workers=workers) as env:
        yield from (_offered_lines if asked.offered else _ceiling_lines)(asked, scenarios, folder, env)


def _ceiling_lines(asked: Asked, scenarios: Sequence[Scenario], folder: Path, env: RunEnvironment) -> Iterator[str]:
    found: list[Ceiling] = []
    for scenario in scenarios:
        rows = calibrated(
            scenario.cells(), scenario, env, against=asked.against, runs=asked.runs, seconds=asked.seconds
        )
        for row in rows:
            found += row
            write_calibration(folder, found)
            yield _line(row, asked.against)


def _offered_lines(asked: Asked, scenarios: Sequence[Scenario], folder: Path, env: RunEnvironment) -> Iterator[str]:
    found: list[Offered] = []
    for scenario in scenarios:
        for cell in scenario.cells():
            for one in offered_rates(cell, scenario, env, asked.seconds):
                found.append(one)
                write_offered(folder, found)
                yield _offered_line(one)


def _scenario(name: str, asked: Asked) -> Scenario:
    """One that has the cells to calibrate; its rooms exist and can take them."""
    system = name if "/" in name else f"plain/{name}"
    values: dict[str, object] = {
        "name": "calibrate",
        "systems": [system],
        "grid": {"message_size": asked.sizes.split(",")},
    }
    document = apply_changes(Document("bench calibrate", values), asked.changes)
    scenario = parse_scenario(document)
    check(document, scenario)
    for cell in scenario.cells():
        if not registry.calibrates(cell.source):
            raise UsageError(
                f"{cell.source} cannot be calibrated: it has no null reader and does not keep what nobody reads"
            )
        source = registry.source(cell.source, scenario.settings)
        refused = no_keys(cell, scenario) or source.unsupported_reason(cell, float(scenario.load.entropy))
        if refused is not None:
            raise UsageError(f"{cell.source} cannot be calibrated with {size_text(cell.message_bytes)}: {refused}")
    return scenario


def _head(against: Sequence[str]) -> str:
    baselines = "".join(f"  {name:>14.14} {'ratio':>6}" for name in against)
    return f"{'source':10} {'size':>8}  {'load':>10} {'':>10}{baselines}"


def _line(row: Sequence[Ceiling], against: Sequence[str]) -> str:
    """The load's median, in messages and bytes a second, and its ratio to each rival's median."""
    by = {ceiling.by: ceiling.hz for ceiling in row}
    size, load = row[0].message_bytes, by["load"]
    baselines = "".join(
        f"  {rate_text(by[name]):>14} {load / by[name]:6.2f}" if by.get(name) else f"  {'–':>14} {'–':>6}"
        for name in against
    )
    cost = f"  {_header_text(load, by[CONSTANT])}" if by.get(CONSTANT) and load > 0 else ""
    return (
        f"{row[0].source:10} {size_text(size):>8}  {rate_text(load):>10} {_bandwidth(load * size):>10}{baselines}{cost}"
    )


def _offered_line(one: Offered) -> str:
    place = f"{one.source:10} {size_text(one.message_bytes):>8}"
    rates = f"{rate_text(one.asked_hz):>10}  {one.sent_hz:>14.6g} /s"
    return f"{place}  {rates}  {100 * one.error:>+8.3f} %  {seconds_text(one.late):>8}"


def _header_text(stamped: float, constant: float) -> str:
    """What a header of its own costs each message, by the two rates."""
    cost = 1 / stamped - 1 / constant
    return f"a header costs {seconds_text(cost)} a message" if cost > 0 else "a header costs nothing that can be seen"


def _bandwidth(rate: float) -> str:
    return f"{rate / 1e9:.2f} GB/s" if rate >= 1e9 else f"{rate / 1e6:.3g} MB/s"


def _codec_line(size: int) -> str:
    """How fast the codec writes messages of a size, and reads and verifies them."""
    count = max(1, min(_BLOCK_MESSAGES, _BLOCK_BYTES // size))
    writer, filler = (
        message_codec.Writer(run=1, producer=0, size=size, cost=0.0, entropy=0.75),
        message_codec.filler(size, 0.75),
    )
    due = np.arange(count, dtype=np.float64)
    written = writer.write(0, due, 0.0)
    writes = count / _median_seconds(lambda: writer.write(0, due, 0.0))
    reads = count / _median_seconds(lambda: message_codec.read(written, size, filler))
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
