"""The deployment of one cell: source, load generator and framework, opened in this order and closed in reverse.

A deployment counts as running only when a few messages have passed through all of it.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from msgspec import Struct

from bench.config.load_profile import profile_of
from bench.errors import PluginError
from bench.model.measurement import ClockOffset
from bench.model.message_codec import ClockReference
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Framework, LoadGenerator, Source
from bench.plugins.site_preflight import require_site
from bench.runner.cell_plan import CellPlan
from bench.system import clock
from bench.telemetry import node_exporter
from bench.workload.load_spec import LoadSpec, SendProgress, create_key_sequence, create_size_sequence
from bench.workload.processing import MessageProcessor

FIRST_MESSAGES = 8
FIRST_MESSAGES_TIMEOUT_S = 90.0
"""For the first messages to pass: a cold framework starts its workers with them."""


class _Parts(Struct, frozen=True):
    """The open plugins of a deployment."""

    source: Source
    load_generator: LoadGenerator
    framework: Framework
    ordered: bool
    clocks: ClockOffset | None


class Deployment:
    """A running deployment for one cell.

    `redeploy` replaces it after a trial that left messages or a dead process behind.
    """

    def __init__(self, plan: CellPlan, env: RunEnvironment) -> None:
        self.plan, self.env = plan, env
        self._stack, self._parts = _open_parts(plan, env)

    @property
    def source(self) -> Source:
        """Return the open source."""
        return self._parts.source

    @property
    def load_generator(self) -> LoadGenerator:
        """Return the open load generator."""
        return self._parts.load_generator

    @property
    def framework(self) -> Framework:
        """Return the open framework."""
        return self._parts.framework

    @property
    def ordered(self) -> bool:
        """Return whether messages that are processed behind later ones are a fault."""
        return self._parts.ordered

    @property
    def clocks(self) -> ClockOffset | None:
        """Return how far the clocks of the site's hosts were apart; None on one machine."""
        return self._parts.clocks

    def close(self) -> None:
        """Close everything; idempotent."""
        self._stack.close()

    def redeploy(self) -> None:
        """Close everything, and open it anew."""
        self.close()
        self._stack, self._parts = _open_parts(self.plan, self.env)

    def load_spec(self, run: int, rate: float, begin: float, seconds: float) -> LoadSpec:
        """Return what a trial of this cell asks of the load generator.

        Args:
            run: number of the trial, from 1; 0 for messages that belong to none.
            rate: messages/s.
            begin: first due time, CLOCK_MONOTONIC seconds.
            seconds: from the first due time to the last one.
        """
        return _load_spec(self.plan, run, rate, begin, seconds)


@contextmanager
def deployed(plan: CellPlan, env: RunEnvironment) -> Iterator[Deployment]:
    """Yield the deployment of a cell; it is closed at the end of the block."""
    deployment = Deployment(plan, env)
    try:
        yield deployment
    finally:
        deployment.close()


def message_work(plan: CellPlan, stamped: ClockReference) -> MessageProcessor:
    """Return what every framework does with each message of a cell, which is stamped by that clock."""
    cell, scenario = plan.cell, plan.scenario
    entropy = float(scenario.load.entropy)
    return MessageProcessor(
        cell.message_bytes, entropy, stamped, create_size_sequence(cell, scenario), create_key_sequence(scenario)
    )


def _open_parts(plan: CellPlan, env: RunEnvironment) -> tuple[ExitStack, _Parts]:
    """Open the plugins and send the first messages through. Raises a HarnessError, leaving nothing open."""
    require_site(env.site)
    cell, settings = plan.cell, plan.scenario.settings
    with ExitStack() as opening:
        source = registry.source(cell.source, settings)
        opening.callback(source.close)
        endpoint = source.open(cell, env)
        ordered = endpoint.ordered or (endpoint.ordered_by_key and plan.scenario.load.keys is not None)
        load_generator = plan.load_generator.open()
        opening.callback(load_generator.close)
        load_generator.open(endpoint, env)
        framework = registry.framework(cell.framework, settings)
        opening.callback(framework.close)
        clocks = node_exporter.measure_clock_offset(env.site)
        stamped = clock.local_clock(clocks, theirs=env.site.load is not None)
        framework.open(cell, endpoint, message_work(plan, stamped), env)
        ordered = ordered and plan.framework.capabilities.ordered
        parts = _Parts(source, load_generator, framework, ordered, clocks)
        _pass_first_messages(plan, parts)
        return opening.pop_all(), parts


def _pass_first_messages(plan: CellPlan, parts: _Parts) -> None:
    """Send a few messages and wait until they were processed."""
    parts.load_generator.start(_load_spec(plan, 0, FIRST_MESSAGES / 0.5, time.monotonic(), 0.5))
    deadline, processed, sent = time.monotonic() + FIRST_MESSAGES_TIMEOUT_S, 0, list[SendProgress]()
    while processed < FIRST_MESSAGES or not (sent and sent[-1].done):
        sent += parts.load_generator.poll()
        reports = [report for report in parts.framework.poll() if report.run <= 0]
        processed += sum(report.count + report.corrupted for report in reports)
        if sent and sent[-1].done and (refused := sent[-1].failed):
            why = (
                f"{plan.cell.source} refused {refused} of the first {FIRST_MESSAGES} messages; the load's log says why"
            )
            raise PluginError(plan.cell.system, "open", why)
        if time.monotonic() > deadline:
            raise PluginError(
                plan.cell.system,
                "open",
                f"of the first {FIRST_MESSAGES} messages {sent[-1].confirmed if sent else 0} were sent"
                f" and {processed} processed within {FIRST_MESSAGES_TIMEOUT_S:g} s",
            )
        time.sleep(0.02)


def _load_spec(plan: CellPlan, run: int, rate: float, begin: float, seconds: float) -> LoadSpec:
    cell, load = plan.cell, plan.scenario.load
    return LoadSpec(
        run,
        rate,
        begin,
        seconds,
        message_bytes=cell.message_bytes,
        cpu_seconds=cell.cpu_seconds,
        entropy=float(load.entropy),
        arrivals=load.arrivals,
        limit=float(load.limit) if load.limit is not None else None,
        workers=load.workers,
        seed=load.seed * 2**16 + run,
        profile=tuple(profile_of(load)),
        sizes=create_size_sequence(cell, plan.scenario),
        keys=create_key_sequence(plan.scenario),
        clock=clock.local_clock(),
    )
