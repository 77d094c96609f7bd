"""How fast the load itself is: its top rate into a source whose messages nobody keeps; beside it, loops without anything of ours.

What a calibration confirms is an upper end for every cell of that source and size: a rate above it is not the framework's to miss.
Kafka keeps what nobody reads (the topic is deleted afterwards); TCP, files and memory get a reader that throws everything away.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.calibration.worker import BaselineRun, Discarding, Outcome, run_baseline
from bench.config.scenario import Scenario
from bench.model.cell import Cell
from bench.model.message_keys import Keys
from bench.model.message_sizes import Sizes
from bench.plugins import registry
from bench.plugins.protocols import Endpoint, LoadGenerator, RunEnvironment
from bench.system import clock, host_info
from bench.system.ipc import Failure, Ready
from bench.system.supervisor import Child
from bench.workload.load_spec import LoadSpec, SendProgress, key_drawing, size_drawing
from bench.workload.rate_meter import Meter

FORMAT = 1
FILE = "calibration.json"
QUICK, TIMES, WARMER = 1.2, 4, 1.15
"""Of the calibration before a cell: its seconds, and how many of them there are at most, as long as each is so many times the best
before it: a cold Kafka takes 10 MB messages at a third of its rate."""
SETTLE = 0.5
"""Seconds between two races: a broker deletes the topic of the one before."""
TIMEOUT_S = 60.0
"""Seconds that an order may last longer than it should, and a rival may take to start."""
CONSTANT = "constant"
"""The rival that is the load itself, sending the same messages over and over: what it is faster by is what the headers cost."""
UNREACHABLE = 1e9
"""Messages/s that nothing reaches: everything is due at once."""


class Ceiling(Struct, frozen=True):
    """The confirmed rates, in messages/s, of the load or of a rival ("bare"...) on one source and size; one for each repetition."""

    source: str
    message_bytes: int
    by: str
    entropy: float
    workers: int
    settings: dict[str, Any]
    """of the source"""
    rates: list[float]
    sizes: Sizes | None = None
    keys: Keys | None = None

    @property
    def hz(self) -> float:
        """The median."""
        return median(self.rates)


class Calibration(Struct, frozen=True):
    """calibration.json: on which machine, with which versions, and what was found."""

    format: int
    cores: int
    versions: dict[str, str]
    ceilings: list[Ceiling]


def generator_ceiling(cell: Cell, scenario: Scenario, env: RunEnvironment, folder: Path) -> float | None:
    """The top rate of the load for a cell's source and size, in messages/s; None where it cannot be known.

    Measured once a run (about 4 s; nothing of the cell may stand: it takes the load's process) and kept in the run's folder
    (calibration.json), from where a report and a resumed run take it. Raises a HarnessError when source or load cannot be opened.
    """
    if scenario.load.by == "inline" or not registry.calibrates(cell.source):
        return None
    known = read_calibration(folder)
    asked = _ceiling(cell, scenario, "load", [])
    if all(_question(ceiling) != asked for ceiling in known):
        rates = [load_rate(cell, scenario, env, QUICK)]
        while len(rates) < TIMES and (len(rates) == 1 or rates[-1] > WARMER * max(rates[:-1])):
            rates.append(load_rate(cell, scenario, env, QUICK))
        write_calibration(folder, [*known, replace(asked, rates=rates)])
    return known_ceiling(cell, scenario, folder)


def known_ceiling(cell: Cell, scenario: Scenario, folder: Path) -> float | None:
    """What `generator_ceiling` found in this run, the best that it saw; None where it found nothing."""
    asked = _ceiling(cell, scenario, "load", [])
    found = next((max(ceiling.rates) for ceiling in read_calibration(folder) if _question(ceiling) == asked), 0.0)
    return found if found > 0 else None


def _question(ceiling: Ceiling) -> Ceiling:
    """A ceiling without its answer."""
    return replace(ceiling, rates=[])


def calibrated(
    cells: Sequence[Cell], scenario: Scenario, env: RunEnvironment, *, against: Sequence[str], runs: int, seconds: float
) -> Iterator[list[Ceiling]]:
    """For each cell the ceilings of the load and of those rivals that its source has; all take turns, `runs` times."""
    for cell in cells:
        baselines = [name for name in against if name in registry.baselines(cell.source)]
        racers: dict[str, Callable[[], float]] = {"load": partial(load_rate, cell, scenario, env, seconds)}
        if CONSTANT in against:
            racers[CONSTANT] = partial(load_rate, cell, scenario, env, seconds, stamped=False)
        racers |= {name: partial(baseline_rate, name, cell, scenario, env, seconds) for name in baselines}
        rates: dict[str, list[float]] = {name: [] for name in racers}
        if runs > 1:  # a server's first race is its warm-up, whoever runs it
            env.note(f"{cell.source} {cell.message_bytes} B: warm-up")
            load_rate(cell, scenario, env, QUICK)
        for turn in range(runs):
            names = list(racers)
            for name in (
                names[turn % len(names) :] + names[: turn % len(names)]
            ):  # whoever is first meets what was left behind
                env.note(f"{cell.source} {cell.message_bytes} B: {name}, run {turn + 1} of {runs}")
                rates[name].append(racers[name]())
                time.sleep(SETTLE)
        yield [_ceiling(cell, scenario, name, found) for name, found in rates.items()]


def load_rate(cell: Cell, scenario: Scenario, env: RunEnvironment, seconds: float, *, stamped: bool = True) -> float:
    """Messages/s that the scenario's load sends and the source confirms when everything is due at once."""
    with standing_load(cell, scenario, env) as load:
        spec = load_spec_of(cell, scenario, UNREACHABLE, seconds, stamped=stamped)
        meter = Meter(seconds)
        for sent in accounts(load, spec):
            if sent.at <= spec.begin + seconds:
                meter.look(sent.at, sent.confirmed)
        return meter.rate


@contextmanager
def standing_load(cell: Cell, scenario: Scenario, env: RunEnvironment) -> Iterator[LoadGenerator]:
    """The load of a cell before a source of which nobody keeps anything."""
    with _endpoint(cell, scenario, env) as endpoint:
        load = registry.load(registry.only_load(cell.source) or scenario.load.by)
        try:
            load.open(endpoint, env)
            with _reader(endpoint, env):
                yield load
        finally:
            load.close()


def load_spec_of(
    cell: Cell, scenario: Scenario, rate: float, seconds: float, *, run: int = 1, stamped: bool = True
) -> LoadSpec:
    """An order for a cell whose messages cost nothing, to begin now."""
    return LoadSpec(
        run,
        rate,
        time.monotonic(),
        seconds,
        message_bytes=cell.message_bytes,
        cpu_seconds=0.0,
        entropy=float(scenario.load.entropy),
        workers=scenario.load.workers,
        clock=clock.local_clock(),
        limit=float(scenario.load.limit) if scenario.load.limit is not None else None,
        sizes=size_drawing(cell, scenario),
        keys=key_drawing(scenario),
        stamped=stamped,
    )


def accounts(load: LoadGenerator, spec: LoadSpec) -> Iterator[SendProgress]:
    """Have an order sent; what the load says of it until it is done, and it is halted when its seconds are over."""
    load.start(spec)
    deadline, halted = spec.begin + spec.seconds + TIMEOUT_S, False
    while time.monotonic() < deadline:
        for sent in load.ask():
            if sent.run == spec.run:
                yield sent
                if sent.done:
                    return
        if not halted and time.monotonic() > spec.begin + spec.seconds:
            load.cancel()
            halted = True
        time.sleep(0.01)


def baseline_rate(name: str, cell: Cell, scenario: Scenario, env: RunEnvironment, seconds: float) -> float:
    """Messages/s that a rival of a source confirms, in a process of its own."""
    with _endpoint(cell, scenario, env) as endpoint:
        contest = BaselineRun(name, endpoint, cell.message_bytes, seconds, str(env.cache))
        if registry.only_load(cell.source):
            return run_baseline(contest)
        child = _apart(env, name="rival", received=Outcome | Failure)
        try:
            child.inbox.send(contest)
            with _reader(endpoint, env):
                return child.wait_reply(Outcome, seconds + 2 * TIMEOUT_S).rate
        finally:
            child.stop()


@contextmanager
def _endpoint(cell: Cell, scenario: Scenario, env: RunEnvironment) -> Iterator[Endpoint]:
    """The cell's source, empty."""
    source = registry.source(cell.source, scenario.settings)
    try:
        yield source.open(cell, env)
    finally:
        source.close()


@contextmanager
def _reader(endpoint: Endpoint, env: RunEnvironment) -> Iterator[None]:
    """Something that takes messages off and throws them away, where the source needs it."""
    if not registry.discards(endpoint.source):
        yield
    elif registry.only_load(endpoint.source):
        over = threading.Event()
        thread = threading.Thread(target=registry.discarding(endpoint.source), args=(endpoint, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(timeout=5)
    else:
        child = _apart(env, name="null-reader", received=Ready | Failure)
        try:
            child.inbox.send(Discarding(endpoint))
            child.wait_reply(Ready, TIMEOUT_S)
            yield
        finally:
            child.stop()


def _apart(env: RunEnvironment, *, name: str, received: Any) -> Child:
    return env.supervisor.start(
        [sys.executable, "-m", "bench.calibration.worker"], name=name, role="framework", received=received
    )


def read_calibration(folder: Path) -> list[Ceiling]:
    """What was calibrated in a run; nothing where there is no such file."""
    path = folder / FILE
    return msgspec.json.decode(path.read_bytes(), type=Calibration).ceilings if path.exists() else []


def write_calibration(folder: Path, ceilings: Sequence[Ceiling]) -> None:
    """Replace a run's calibration in one step."""
    part = folder / f".{FILE}.part"
    whole = Calibration(FORMAT, host_info.cores(), host_info.versions(), list(ceilings))
    part.write_bytes(msgspec.json.format(msgspec.json.encode(whole), indent=1))
    part.replace(folder / FILE)


def _ceiling(cell: Cell, scenario: Scenario, by: str, rates: list[float]) -> Ceiling:
    load, settings = scenario.load, scenario.settings.get(cell.source, {})
    told = (cell.source, cell.message_bytes, by, float(load.entropy), load.workers, _plain(settings), rates)
    return Ceiling(*told, cell.sizes, load.keys)


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON keeps them, so that what was written equals what is asked for again."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(dict(settings), enc_hook=str))
    return plain
