"""The table of `bench calibrate`, line by line as it is measured."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from bench.calibration.calibration_file import Ceiling, write_calibration
from bench.calibration.generator_ceiling import CONSTANT, LOAD, calibrates, measure_ceilings
from bench.calibration.rate_accuracy import RateAccuracy, measure_accuracy, write_accuracy
from bench.cli.output import complain
from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.config.validation import apply_changes, parse_scenario
from bench.config.yaml_document import Document
from bench.errors import UsageError
from bench.model import message_codec
from bench.model.message_filler import make_filler
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.scenario_check import check_scenario, scenario_on_site
from bench.runner.cell_plan import missing_keys_reason
from bench.system import host_info
from bench.system.supervisor import Supervisor
from bench.units import rate_text, seconds_text, size_text

CODEC = "message"
_ACCURACY_HEAD = f"{'source':10} {'size':>8}  {'requested':>10}  {'sent':>17}  {'error':>10}  {'late':>8}"
_BLOCK_BYTES, _BLOCK_MESSAGES = 4 * 10**6, 4096


class CalibrationRequest(Struct, frozen=True):
    """The request of the user."""

    names: list[str]
    """of systems or sources"""
    against: list[str]
    """baseline producers"""
    sizes: str
    """as a list that is separated by commas"""
    runs: int
    seconds: float
    changes: list[str]
    """PATH=VALUE each"""
    offered: bool = False
    """whether to measure how accurately rates are kept, instead of the maximum rate"""


def table_lines(request: CalibrationRequest, folder: Path, site: Site, cache: Path, children: Path) -> Iterator[str]:
    """Yield the table's lines; calibration.json in `folder` is complete after each.

    Raises:
        UsageError: before anything starts.
    """
    installed = registry.names("sources")
    for name in request.names:
        if name != CODEC and name.rpartition("/")[2] not in installed:
            raise UsageError(f"{name!r}: no such source; installed: {', '.join(installed)}")
    scenarios = [scenario_on_site(_scenario(name, request), site) for name in request.names if name != CODEC]
    sources = {cell.source for scenario in scenarios for cell in scenario.cells()}
    known = {baseline for source in sources for baseline in registry.source_plugin(source).baselines}
    known |= {CONSTANT} if scenarios else set()
    for name in request.against:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise UsageError(f"--against {name}: no such baseline producer of these sources; known: {listed}")
    yield _ACCURACY_HEAD if request.offered else _head(request.against)
    if CODEC in request.names:
        yield from (_codec_line(size) for size in (100, 1000, 10_000, 100_000, 1_000_000))
    if not scenarios:
        return
    supervisor, cores = Supervisor(children, folder / "logs"), host_info.cores()
    with RunEnvironment(site, supervisor, folder / "data", cache, cores=cores, note=complain) as env:
        yield from (_accuracy_lines if request.offered else _ceiling_lines)(request, scenarios, folder, env)


def _ceiling_lines(
    request: CalibrationRequest, scenarios: Sequence[Scenario], folder: Path, env: RunEnvironment
) -> Iterator[str]:
    found: list[Ceiling] = []
    for scenario in scenarios:
        rows = measure_ceilings(
            scenario.cells(), scenario, env, against=request.against, runs=request.runs, seconds=request.seconds
        )
        for row in rows:
            found += row
            write_calibration(folder, found)
            yield _line(row, request.against)


def _accuracy_lines(
    request: CalibrationRequest, scenarios: Sequence[Scenario], folder: Path, env: RunEnvironment
) -> Iterator[str]:
    found: list[RateAccuracy] = []
    for scenario in scenarios:
        for cell in scenario.cells():
            for one in measure_accuracy(cell, scenario, env, request.seconds):
                found.append(one)
                write_accuracy(folder, found)
                yield _accuracy_line(one)


def _scenario(name: str, request: CalibrationRequest) -> Scenario:
    """Return a scenario with the cells to calibrate; its plugins exist and can take them."""
    framework = registry.names("frameworks")[0]  # of no consequence: nothing reads the source but to discard
    system = name if "/" in name else f"{framework}/{name}"
    values: dict[str, object] = {
        "name": "calibrate",
        "systems": [system],
        "grid": {"message_size": request.sizes.split(",")},
    }
    document = apply_changes(Document("bench calibrate", values), request.changes)
    scenario = parse_scenario(document)
    check_scenario(document, scenario)
    for cell in scenario.cells():
        if not calibrates(cell.source):
            raise UsageError(
                f"{cell.source} cannot be calibrated: it has no discarding reader and does not retain unread messages"
            )
        source = registry.make_source(cell.source, scenario.settings)
        entropy = float(scenario.load.entropy)
        reason = missing_keys_reason(cell, scenario) or source.unsupported_reason(cell, entropy)
        if reason is not None:
            raise UsageError(f"{cell.source} cannot be calibrated with {size_text(cell.message_bytes)}: {reason}")
    return scenario


def _head(against: Sequence[str]) -> str:
    baselines = "".join(f"  {name:>14.14} {'ratio':>6}" for name in against)
    return f"{'source':10} {'size':>8}  {'load':>10} {'':>10}{baselines}"


def _line(row: Sequence[Ceiling], against: Sequence[str]) -> str:
    """Return the load generator's median, in messages/s and bytes/s, and its ratio to each baseline's median."""
    by = {ceiling.by: ceiling.hz for ceiling in row}
    size, load = row[0].message_bytes, by[LOAD]
    baselines = "".join(
        f"  {rate_text(by[name]):>14} {load / by[name]:6.2f}" if by.get(name) else f"  {'–':>14} {'–':>6}"
        for name in against
    )
    cost = f"  {_header_text(load, by[CONSTANT])}" if by.get(CONSTANT) and load > 0 else ""
    return (
        f"{row[0].source:10} {size_text(size):>8}  {rate_text(load):>10} {_bandwidth(load * size):>10}{baselines}{cost}"
    )


def _accuracy_line(one: RateAccuracy) -> str:
    place = f"{one.source:10} {size_text(one.message_bytes):>8}"
    rates = f"{rate_text(one.requested_hz):>10}  {one.sent_hz:>14.6g} /s"
    return f"{place}  {rates}  {100 * one.error:>+8.3f} %  {seconds_text(one.late):>8}"


def _header_text(stamped: float, constant: float) -> str:
    """Return what a header of its own costs each message, from the two rates."""
    cost = 1 / stamped - 1 / constant
    return f"a header costs {seconds_text(cost)} a message" if cost > 0 else "writing a header costs no measurable time"


def _bandwidth(rate: float) -> str:
    return f"{rate / 1e9:.2f} GB/s" if rate >= 1e9 else f"{rate / 1e6:.3g} MB/s"


def _codec_line(size: int) -> str:
    """Return how fast the codec writes messages of a size, and reads and verifies them."""
    count = max(1, min(_BLOCK_MESSAGES, _BLOCK_BYTES // size))
    writer, filler = (
        message_codec.MessageWriter(run=1, producer=0, size=size, cost=0.0, entropy=0.75),
        make_filler(size, 0.75),
    )
    due = np.arange(count, dtype=np.float64)
    written = writer.write(0, due, 0.0)
    writes = count / _median_seconds(lambda: writer.write(0, due, 0.0))
    reads = count / _median_seconds(lambda: message_codec.read(written, size, filler))
    return f"{CODEC:10} {size_text(size):>8}  writes {rate_text(writes):>9}  reads and verifies {rate_text(reads):>9}"


def _median_seconds(work: Callable[[], object], seconds: float = 0.3) -> float:
    """Return the seconds of the median call within a while."""
    took: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(took) < 3:
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return float(np.median(took))
