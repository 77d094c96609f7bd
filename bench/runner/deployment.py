"""The rig of one cell: source, load and framework standing together; opened in that order, closed in reverse.

A rig counts as standing only when a few messages have gone all the way through.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from bench.analysis import bounds
from bench.config.load_profile import profile_of
from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.errors import PluginError
from bench.model.cell import Cell
from bench.model.measurement import Bound, ClockOffset
from bench.model.message_codec import Clock
from bench.plugins import registry
from bench.plugins.protocols import Copying, Framework, LoadGenerator, RunEnvironment, Source
from bench.services import preflight
from bench.system import clock
from bench.telemetry import node_exporter
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.load_spec import LoadSpec, SendProgress, key_drawing, size_drawing
from bench.workload.processing import Work

FIRST_MESSAGES = 8
FIRST_DEADLINE = 90.0
"""Seconds in which the first messages must have gone through: a cold framework starts its workers with them."""


class Deployment:
    """A rig that stands; `renew` replaces it by a fresh one when a trial left a backlog or a corpse behind."""

    def __init__(self, cell: Cell, scenario: Scenario, env: RunEnvironment) -> None:
        self.cell, self._scenario, self.env = cell, scenario, env
        self._stack = ExitStack()
        self.source: Source
        self.load: LoadGenerator
        self.framework: Framework
        self.ordered = True
        """whether messages that are worked on behind later ones are a mistake"""
        self.clocks: ClockOffset | None = None

    def open(self) -> None:
        """Open the rooms and send the first messages through; raises a HarnessError, leaving nothing open."""
        preflight.require(self.env.site)
        with ExitStack() as opening:
            settings, cell = self._scenario.settings, self.cell
            self.source = registry.source(cell.source, settings)
            opening.callback(self.source.close)
            endpoint = self.source.open(cell, self.env)
            ordered = endpoint.ordered or (endpoint.ordered_by_key and self._scenario.load.keys is not None)
            self.ordered = ordered and registry.keeps_order(cell.framework)
            self.load = registry.load(self._scenario.load.by)
            opening.callback(self.load.close)
            self.load.open(endpoint, self.env)
            self.framework = registry.framework(cell.framework, settings)
            opening.callback(self.framework.close)
            self.clocks = node_exporter.apart(self.env.site)
            work = work_of(cell, self._scenario, clock.ours(self.clocks, theirs=self.env.site.load is not None))
            self.framework.open(cell, endpoint, work, self.env)
            self._first_messages()
            self._stack = opening.pop_all()

    def close(self) -> None:
        self._stack.close()

    def redeploy(self) -> None:
        """Close, and open again."""
        self.close()
        self.open()

    def spec(self, run: int, rate: float, begin: float, seconds: float) -> LoadSpec:
        """An order for this cell."""
        load = self._scenario.load
        return LoadSpec(
            run,
            rate,
            begin,
            seconds,
            message_bytes=self.cell.message_bytes,
            cpu_seconds=self.cell.cpu_seconds,
            entropy=float(load.entropy),
            arrivals=load.arrivals,
            limit=float(load.limit) if load.limit is not None else None,
            workers=load.workers,
            seed=load.seed * 2**16 + run,
            profile=tuple(profile_of(load)),
            sizes=size_drawing(self.cell, self._scenario),
            keys=key_drawing(self._scenario),
            clock=clock.ours(),
        )

    def _first_messages(self) -> None:
        """Send a few messages and wait until they were processed."""
        spec = self.spec(0, FIRST_MESSAGES / 0.5, time.monotonic(), 0.5)
        self.load.start(spec)
        deadline, processed, sent = time.monotonic() + FIRST_DEADLINE, 0, list[SendProgress]()
        while processed < FIRST_MESSAGES or not (sent and sent[-1].done):
            sent += self.load.ask()
            processed += sum(_all_of(report) for report in self.framework.ask() if report.run <= 0)
            if sent and sent[-1].done and (refused := sent[-1].failed):
                why = f"{self.cell.source} refused {refused} of the first {FIRST_MESSAGES} messages; the load's log says why"
                raise PluginError(self.cell.system, "stand", why)
            if time.monotonic() > deadline:
                raise PluginError(
                    self.cell.system,
                    "stand",
                    f"of the first {FIRST_MESSAGES} messages {sent[-1].confirmed if sent else 0} were sent"
                    f" and {processed} processed within {FIRST_DEADLINE:g} s",
                )
            time.sleep(0.02)


def work_of(cell: Cell, scenario: Scenario, stamped: Clock) -> Work:
    """What every framework does with each message of a cell, which is stamped by that clock."""
    entropy = float(scenario.load.entropy)
    return Work(cell.message_bytes, entropy, stamped, size_drawing(cell, scenario), key_drawing(scenario))


@contextmanager
def deployed(cell: Cell, scenario: Scenario, env: RunEnvironment) -> Iterator[Deployment]:
    """The rig of a cell, for as long as the block lasts."""
    rig = Deployment(cell, scenario, env)
    rig.open()
    try:
        yield rig
    finally:
        rig.close()


def unsupported_reason(cell: Cell, scenario: Scenario, site: Site) -> str | None:
    """Why the rooms of a cell cannot do it on a site; None when they can. UsageError when there is no such room."""
    framework = registry.framework(cell.framework, scenario.settings)
    source = registry.source(cell.source, scenario.settings)
    return (
        _too_many_workers(cell, scenario)
        or no_keys(cell, scenario)
        or framework.unsupported_reason(cell, cell.source)
        or source.unsupported_reason(cell, float(scenario.load.entropy))
        or site.unseen(cell.framework, cell.source)
    )


def _too_many_workers(cell: Cell, scenario: Scenario) -> str | None:
    workers = scenario.load.workers
    if workers > 1 and scenario.load.by == "inline":
        return f"load.workers: {workers}, but the inline load is one thread; use load.by=swarm"
    if workers > 1 and registry.one_sender(cell.source):
        return f"load.workers: {workers}, but {cell.source} takes messages of one sender"
    return None


def no_keys(cell: Cell, scenario: Scenario) -> str | None:
    """Why messages of a cell's source cannot have the keys that the scenario's load asks for; None when they can, or need none."""
    if scenario.load.keys is None or registry.has_keys(cell.source):
        return None
    return (
        f"load.keys: messages of {cell.source} have no keys; leave it out, or use a source that has them, such as kafka"
    )


def cell_bounds(cell: Cell, scenario: Scenario, site: Site, cores: int) -> list[Bound]:
    """Return the known bounds on the rate of a cell, the lowest first: CPU, network and disk.

    `cores` are those of this machine that a framework here has.
    """
    source = registry.source(cell.source, scenario.settings)
    copies = source.copies(site) if isinstance(source, Copying) else None
    rates = {"network": site.link(cell.framework, cell.source), "disk": site.disk}
    known = {name: None if rate is None else float(rate) for name, rate in rates.items()}
    return bounds.cell_bounds(cell, site.cores_of(cell.framework, cores), copies, **known, cards=site.load is not None)


def batch_interval(cell: Cell, scenario: Scenario) -> float:
    """Seconds between two moments at which the cell's framework shows progress."""
    return registry.framework(cell.framework, scenario.settings).batch_interval


def _all_of(report: ProcessingReport) -> int:
    return report.count + report.corrupted
