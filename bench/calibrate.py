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

from bench import machine, rooms
from bench.apart import Contest, Discarding, Outcome, raced
from bench.errors import Died, NotReady
from bench.faces import Endpoint, Ground
from bench.meter import Meter
from bench.order import Order, Ready, Trouble
from bench.process import Child
from bench.scenario import Cell, Scenario

FORMAT = 1
FILE = "calibration.json"
QUICK = 1.2
"""Seconds of the calibration before a cell."""
SETTLE = 0.5
"""Seconds between two races: a broker deletes the topic of the one before."""
PATIENCE = 60.0
"""Seconds that an order may last longer than it should, and a rival may take to start."""
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


def generator_ceiling(cell: Cell, scenario: Scenario, ground: Ground, folder: Path) -> float | None:
    """The top rate of the load for a cell's source and size, in messages/s; None where it cannot be known.

    Measured once a run (about 2 s; nothing of the cell may stand: it takes the load's process) and kept in the run's folder
    (calibration.json), from where a report and a resumed run take it. Raises a HarnessError when source or load cannot be opened.
    """
    if scenario.load.by == "inline" or not rooms.calibrates(cell.source):
        return None
    known = read_calibration(folder)
    asked = _ceiling(cell, scenario, "load", [])
    if all(_question(ceiling) != asked for ceiling in known):
        found = replace(asked, rates=[load_rate(cell, scenario, ground, QUICK)])
        write_calibration(folder, [*known, found])
    return known_ceiling(cell, scenario, folder)


def known_ceiling(cell: Cell, scenario: Scenario, folder: Path) -> float | None:
    """What `generator_ceiling` found in this run; None where it found nothing."""
    asked = _ceiling(cell, scenario, "load", [])
    found = next((ceiling.hz for ceiling in read_calibration(folder) if _question(ceiling) == asked), 0.0)
    return found if found > 0 else None


def _question(ceiling: Ceiling) -> Ceiling:
    """A ceiling without its answer."""
    return replace(ceiling, rates=[])


def calibrated(
    cells: Sequence[Cell], scenario: Scenario, ground: Ground, *, against: Sequence[str], runs: int, seconds: float
) -> Iterator[list[Ceiling]]:
    """For each cell the ceilings of the load and of those rivals that its source has; all take turns, `runs` times."""
    for cell in cells:
        rivals = [name for name in against if name in rooms.rivals(cell.source)]
        racers: dict[str, Callable[[], float]] = {"load": partial(load_rate, cell, scenario, ground, seconds)}
        racers |= {name: partial(rival_rate, name, cell, scenario, ground, seconds) for name in rivals}
        rates: dict[str, list[float]] = {name: [] for name in racers}
        for turn in range(runs):
            names = list(racers)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:  # whoever is first meets what was left behind
                ground.note(f"{cell.source} {cell.message_bytes} B: {name}, run {turn + 1} of {runs}")
                rates[name].append(racers[name]())
                time.sleep(SETTLE)
        yield [_ceiling(cell, scenario, name, found) for name, found in rates.items()]


def load_rate(cell: Cell, scenario: Scenario, ground: Ground, seconds: float) -> float:
    """Messages/s that the scenario's load sends and the source confirms when everything is due at once."""
    with _endpoint(cell, scenario, ground) as endpoint:
        load = rooms.load(rooms.only_load(cell.source) or scenario.load.by)
        try:
            load.open(endpoint, ground)
            with _reader(endpoint, ground):
                order = Order(
                    1,
                    UNREACHABLE,
                    time.monotonic(),
                    seconds,
                    message_bytes=cell.message_bytes,
                    cpu_seconds=0.0,
                    entropy=float(scenario.load.entropy),
                    workers=scenario.load.workers,
                    limit=float(scenario.load.limit) if scenario.load.limit is not None else None,
                )
                load.start(order)
                meter, deadline, halted, done = Meter(seconds), order.begin + seconds + PATIENCE, False, False
                while not done and time.monotonic() < deadline:
                    for sent in load.ask():
                        if sent.at <= order.begin + seconds:
                            meter.look(sent.at, sent.confirmed)
                        done = sent.done
                    if not halted and time.monotonic() > order.begin + seconds:
                        load.halt()
                        halted = True
                    time.sleep(0.01)
                return meter.rate
        finally:
            load.close()


def rival_rate(name: str, cell: Cell, scenario: Scenario, ground: Ground, seconds: float) -> float:
    """Messages/s that a rival of a source confirms, in a process of its own."""
    with _endpoint(cell, scenario, ground) as endpoint:
        contest = Contest(name, endpoint, cell.message_bytes, seconds, str(ground.cache))
        if rooms.only_load(cell.source):
            return raced(contest)
        child = _apart(ground, name="rival", heard=Outcome | Trouble)
        try:
            child.inbox.tell(contest)
            with _reader(endpoint, ground):
                outcome: Outcome = _answer(child, Outcome, seconds + 2 * PATIENCE)
                return outcome.rate
        finally:
            child.stop()


@contextmanager
def _endpoint(cell: Cell, scenario: Scenario, ground: Ground) -> Iterator[Endpoint]:
    """The cell's source, empty."""
    source = rooms.source(cell.source, scenario.settings)
    try:
        yield source.open(cell, ground)
    finally:
        source.close()


@contextmanager
def _reader(endpoint: Endpoint, ground: Ground) -> Iterator[None]:
    """Something that takes messages off and throws them away, where the source needs it."""
    if not rooms.discards(endpoint.source):
        yield
    elif rooms.only_load(endpoint.source):
        over = threading.Event()
        thread = threading.Thread(target=rooms.discarding(endpoint.source), args=(endpoint, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(timeout=5)
    else:
        child = _apart(ground, name="null-reader", heard=Ready | Trouble)
        try:
            child.inbox.tell(Discarding(endpoint))
            _answer(child, Ready, PATIENCE)
            yield
        finally:
            child.stop()


def _apart(ground: Ground, *, name: str, heard: Any) -> Child:
    return ground.supervisor.start([sys.executable, "-m", "bench.apart"], name=name, role="framework", heard=heard)


def _answer(child: Child, kind: type[Any], seconds: float) -> Any:
    """The first thing of a kind that a child says; raises Died when it tells of trouble or ends, NotReady after the seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        alive = child.alive()
        for one in child.inbox.heard(0.05):
            if isinstance(one, Trouble):
                raise Died(f"{child.name} ended: {one.reason}", child.log)
            if isinstance(one, kind):
                return one
        if not alive:
            raise child.died()
    raise NotReady(f"{child.name} did not answer within {seconds:g} s", child.log)


def read_calibration(folder: Path) -> list[Ceiling]:
    """What was calibrated in a run; nothing where there is no such file."""
    path = folder / FILE
    return msgspec.json.decode(path.read_bytes(), type=Calibration).ceilings if path.exists() else []


def write_calibration(folder: Path, ceilings: Sequence[Ceiling]) -> None:
    """Replace a run's calibration in one step."""
    part = folder / f".{FILE}.part"
    whole = Calibration(FORMAT, machine.cores(), machine.versions(), list(ceilings))
    part.write_bytes(msgspec.json.format(msgspec.json.encode(whole), indent=1))
    part.replace(folder / FILE)


def _ceiling(cell: Cell, scenario: Scenario, by: str, rates: list[float]) -> Ceiling:
    load, settings = scenario.load, scenario.settings.get(cell.source, {})
    return Ceiling(cell.source, cell.message_bytes, by, float(load.entropy), load.workers, _plain(settings), rates)


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON keeps them, so that what was written equals what is asked for again."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(dict(settings), enc_hook=str))
    return plain
