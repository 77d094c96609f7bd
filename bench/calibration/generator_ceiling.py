"""The maximum rate of the load generator, and of baseline producers, with a source that no framework reads.

It is an upper end of what a trial can show for any cell of that source and size: above it, the load generator is the
limit, not the framework. A source that retains unread messages needs no reader; any other one gets a reader that
discards everything.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bench.calibration.calibration_file import Ceiling, read_calibration, write_calibration
from bench.calibration.unread_source import discard_messages, open_loaded_source, open_source, start_worker
from bench.calibration.worker import BaselineRun, MeasuredRate, run_baseline
from bench.config.scenario import Scenario
from bench.errors import HarnessError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.plugin import LoadGeneratorPlugin
from bench.plugins.protocols import LoadGenerator
from bench.system import clock
from bench.system.ipc import Failure
from bench.workload.load_spec import LoadSpec, SendProgress, create_key_sequence, create_size_sequence
from bench.workload.rate_meter import RateMeter

logger = logging.getLogger(__name__)

QUICK_S, MAX_REPEATS, MIN_GAIN = 0.8, 3, 1.2
"""For the calibration before a cell: seconds of one load, and the greatest number of loads. A third load follows if the
second one exceeds the first by this factor: a Kafka server that has just started takes 10 MB messages at a third of its
later rate."""
SETTLE_S = 0.5
"""Between two measurements: a broker deletes the topic of the one before."""
EXTRA_TIMEOUT_S = 60.0
"""That a load may last longer than it should, and a baseline producer may take to start."""
LOAD = "load"
"""The name of the load generator among the producers that are compared."""
CONSTANT = "constant"
"""The name of the load generator that sends one message again and again, so without the cost of headers."""
UNREACHABLE_HZ = 1e9
"""Messages/s that nothing reaches: everything is due at once."""


class GeneratorCeilings:
    """The ceilings that a run has measured so far, kept in its folder, from where a resumed run takes them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ceilings = read_calibration(folder)

    def measure(self, cell: Cell, scenario: Scenario, env: RunEnvironment) -> float | None:
        """Return the load generator's maximum rate for a cell's source and size; measured once a run, in about 4 s.

        Args:
            cell: The cell; nothing of it may be deployed, since the measurement uses the load generator's process.
            scenario: Its `load.limit` bounds the answer: a sender that paused sends faster until it has made up for the
                pause, so a window of half a second may show more than the limit.
            env: The environment in which source and load generator are opened.

        Returns:
            Messages/s; None where it cannot be known, also if one of them cannot be opened, which is logged.
        """
        wanted = _ceiling(cell, scenario, LOAD, [])
        known = self._find(wanted)
        if known is None and calibrates(cell.source) and not _load_generator(cell, scenario).in_process:
            try:
                known = self._measure(wanted, cell, scenario, env)
            except HarnessError as problem:
                logger.warning("%s: the load generator could not be calibrated: %s", cell.name, problem)
        if known and scenario.load.limit is not None:
            known = min(known, float(scenario.load.limit))
        return known or None

    def _find(self, wanted: Ceiling) -> float | None:
        return next((max(one.rates) for one in self._ceilings if replace(one, rates=[]) == wanted), None)

    def _measure(self, wanted: Ceiling, cell: Cell, scenario: Scenario, env: RunEnvironment) -> float:
        with open_loaded_source(cell, scenario, env) as (source, load):
            rates = [_confirmed_hz(load, cell, scenario, QUICK_S)]
            while len(rates) < MAX_REPEATS and (len(rates) == 1 or rates[-1] > MIN_GAIN * max(rates[:-1])):
                source.reset()
                rates.append(_confirmed_hz(load, cell, scenario, QUICK_S))
        self._ceilings.append(replace(wanted, rates=rates))
        write_calibration(self._folder, self._ceilings)
        return max(rates)


def calibrates(source: str) -> bool:
    """Return whether a load can be measured against the source alone.

    It retains unread messages, or has a discarding reader.
    """
    plugin = registry.source_plugin(source)
    return plugin.capabilities.retains_unread or plugin.discard is not None


def measure_ceilings(  # noqa: PLR0913  a plan of measurements; only one call has one
    cells: Sequence[Cell], scenario: Scenario, env: RunEnvironment, *, against: Sequence[str], runs: int, seconds: float
) -> Iterator[list[Ceiling]]:
    """Yield for each cell the ceilings of the load generator and of those baseline producers that its source has.

    All take turns, `runs` times, `seconds` each.
    """
    for cell in cells:
        names = [name for name in against if name in registry.source_plugin(cell.source).baselines]
        producers: dict[str, Callable[[], float]] = {LOAD: partial(measure_load, cell, scenario, env, seconds)}
        if CONSTANT in against:
            producers[CONSTANT] = partial(measure_load, cell, scenario, env, seconds, stamped=False)
        producers |= {name: partial(measure_baseline, name, cell, scenario, env, seconds) for name in names}
        rates: dict[str, list[float]] = {name: [] for name in producers}
        if runs > 1:  # a server's first load is its warm-up, whoever sends it
            env.note(f"{cell.source} {cell.message_bytes} B: warm-up")
            measure_load(cell, scenario, env, QUICK_S)
        for turn in range(runs):
            order = list(producers)
            for name in order[turn % len(order) :] + order[: turn % len(order)]:  # the first meets what was left behind
                env.note(f"{cell.source} {cell.message_bytes} B: {name}, run {turn + 1} of {runs}")
                rates[name].append(producers[name]())
                time.sleep(SETTLE_S)
        yield [_ceiling(cell, scenario, name, found) for name, found in rates.items()]


def measure_load(cell: Cell, scenario: Scenario, env: RunEnvironment, seconds: float, *, stamped: bool = True) -> float:
    """Return the messages/s that the load generator sends and the source confirms when everything is due at once.

    Args:
        cell: The cell whose source and message size are used.
        scenario: Its load generator and settings.
        env: The environment in which both are opened.
        seconds: Duration of the load.
        stamped: False if one message is sent over and over, without a header of its own.

    Raises:
        HarnessError: The source or the load generator cannot be opened, or died.
    """
    with open_load(cell, scenario, env) as load:
        return _confirmed_hz(load, cell, scenario, seconds, stamped=stamped)


@contextmanager
def open_load(cell: Cell, scenario: Scenario, env: RunEnvironment) -> Iterator[LoadGenerator]:
    """Yield the load generator of a cell, open at a source of which nobody keeps anything."""
    with open_loaded_source(cell, scenario, env) as (_, load):
        yield load


def load_spec_of(cell: Cell, scenario: Scenario, rate: float, seconds: float, *, run: int = 1) -> LoadSpec:
    """Return a spec for the messages of a cell, at a constant rate from now on; processing them costs nothing.

    Args:
        cell: The cell; its message size in bytes is used.
        scenario: Its entropy, keys, workers and limit of the load are used.
        rate: Messages/s.
        seconds: From now until the last due time.
        run: Number that every message carries.
    """
    return LoadSpec(
        run,
        rate,
        time.monotonic(),
        seconds,
        message_bytes=cell.message_bytes,
        cpu_seconds=0.0,
        entropy=float(scenario.load.entropy),
        workers=scenario.load.worker_count,
        clock=clock.local_clock(),
        limit=float(scenario.load.limit) if scenario.load.limit is not None else None,
        sizes=create_size_sequence(cell, scenario),
        keys=create_key_sequence(scenario),
    )


def send_load(load: LoadGenerator, spec: LoadSpec) -> Iterator[SendProgress]:
    """Have a spec sent; yield the progress until it is done. It is cancelled when its seconds are over."""
    load.start(spec)
    deadline, cancelled = spec.begin + spec.seconds + EXTRA_TIMEOUT_S, False
    while time.monotonic() < deadline:
        for progress in load.poll():
            if progress.run == spec.run:
                yield progress
                if progress.done:
                    return
        if not cancelled and time.monotonic() > spec.begin + spec.seconds:
            load.cancel()
            cancelled = True
        time.sleep(0.01)


def measure_baseline(name: str, cell: Cell, scenario: Scenario, env: RunEnvironment, seconds: float) -> float:
    """Return the messages/s that a baseline producer confirms, in a process of its own where the source allows it.

    Args:
        name: The baseline producer's name in the source's declaration.
        cell: The cell whose source and message size are used.
        scenario: Its settings of the source are used.
        env: The environment in which the source is opened.
        seconds: Duration of the load.

    Raises:
        HarnessError: The source cannot be opened, or the baseline producer fails.
    """
    with open_source(cell, scenario, env) as (_, endpoint):
        task = BaselineRun(name, endpoint, cell.message_bytes, seconds, str(env.cache))
        if registry.source_plugin(cell.source).capabilities.in_process:
            return run_baseline(task)
        child = start_worker(env, name="baseline-producer", replies=MeasuredRate | Failure)
        try:
            child.inbox.send(task)
            with discard_messages(endpoint, env):
                return child.wait_reply(MeasuredRate, seconds + 2 * EXTRA_TIMEOUT_S).rate
        finally:
            child.stop()


def _load_generator(cell: Cell, scenario: Scenario) -> LoadGeneratorPlugin:
    return registry.load_generator_for(registry.source_plugin(cell.source), scenario)


def _confirmed_hz(
    load: LoadGenerator, cell: Cell, scenario: Scenario, seconds: float, *, stamped: bool = True
) -> float:
    """Return messages/s that a source confirms when everything is due at once."""
    spec = replace(load_spec_of(cell, scenario, UNREACHABLE_HZ, seconds), stamped=stamped)
    meter = RateMeter(seconds)
    for progress in send_load(load, spec):
        if progress.at <= spec.begin + seconds:
            meter.record(progress.at, progress.confirmed)
    return meter.rate


def _ceiling(cell: Cell, scenario: Scenario, by: str, rates: list[float]) -> Ceiling:
    load, settings = scenario.load, scenario.settings.get(cell.source, {})
    return Ceiling(
        cell.source,
        cell.message_bytes,
        by,
        float(load.entropy),
        load.worker_count,
        _plain(settings),
        rates,
        cell.sizes,
        load.keys,
    )


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as JSON keeps them, so that what was written equals what is asked for again."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(dict(settings), enc_hook=str))
    return plain
