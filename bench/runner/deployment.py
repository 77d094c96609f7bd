"""The deployment of one cell: source, load generator and framework, opened in this order and closed in reverse.

A deployment counts as running only when a few messages have passed through all of it.
"""

import logging
import time
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager

from msgspec import Struct
from msgspec.structs import replace

from bench.calibration.generator_ceiling import load_spec_of
from bench.config.load_profile import profile_of, profile_over_time
from bench.errors import HarnessError, PluginError, ProcessDiedError, UsageError
from bench.model.measurement import ClockOffset, Measurement
from bench.model.message_header import ClockReference
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import LoadGenerator, RunningFramework, SessionFramework, Source
from bench.plugins.site_preflight import part_of, require_site
from bench.plugins.split_source import open_endpoint
from bench.runner.cell_plan import CellPlan
from bench.system import clock
from bench.telemetry import node_exporter
from bench.workload.load_spec import LoadSpec, SendProgress, create_key_sequence, create_size_sequence
from bench.workload.processing import MessageProcessor

logger = logging.getLogger(__name__)

FIRST_MESSAGES, FIRST_MESSAGES_S = 8, 0.05
FIRST_MESSAGES_TIMEOUT_S = 90.0
"""For the first messages to pass: a cold framework starts its workers with them."""


class _Parts(Struct, frozen=True):
    """The open plugins of a deployment."""

    source: Source
    load_generator: LoadGenerator
    framework: RunningFramework
    ordered: bool
    clocks: ClockOffset | None


class _StopWatch:
    """The seconds that the steps of a procedure take, for the log."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self._laps: list[str] = []

    def lap(self, step: str) -> None:
        """Note that a step is over."""
        now = time.monotonic()
        self._laps.append(f"{step} {now - self._last:.2f}")
        self._last = now

    def __str__(self) -> str:
        return f"{self._last - self._began:.2f} s ({', '.join(self._laps)})"


class Deployment:
    """A running deployment for one cell.

    `redeploy` replaces it after a trial that left messages or a dead process behind.
    """

    def __init__(self, plan: CellPlan, env: RunEnvironment) -> None:
        self.plan, self.env = plan, env
        self._open(ProcessDiedError)

    @property
    def source(self) -> Source:
        """Return the open source."""
        return self._parts.source

    @property
    def load_generator(self) -> LoadGenerator:
        """Return the open load generator."""
        return self._parts.load_generator

    @property
    def framework(self) -> RunningFramework:
        """Return the running framework."""
        return self._parts.framework

    @property
    def ordered(self) -> bool:
        """Return whether messages that are processed behind later ones are a fault."""
        return self._parts.ordered

    @property
    def clocks(self) -> ClockOffset | None:
        """Return how far the clocks of the site's hosts were apart; None on one machine."""
        return self._parts.clocks

    @property
    def warm_s(self) -> float:
        """Return for how many seconds the framework's present processes were under load so far."""
        return self.env.load_seconds.get(self._session, 0.0)

    @property
    def is_warm(self) -> bool:
        """Return whether more load would not make the framework's processes faster."""
        return self.warm_s >= self.plan.warm_up_s

    def add_load(self, seconds: float) -> None:
        """Note that the framework was under load for so long."""
        self.env.load_seconds[self._session] = self.warm_s + seconds

    def close(self) -> None:
        """Close everything; idempotent."""
        self._stack.close()

    def make_ready(self, last: Measurement) -> None:
        """Empty it after a trial; replace it where messages were left in it or a process died."""
        if last.deployment_reusable:
            self.source.reset()
        else:
            self.redeploy()

    def redeploy(self) -> None:
        """Close everything, and open it anew; a second time where that fails.

        A process that is about to end may serve the first attempt only in part.
        """
        began = time.monotonic()
        self.close()
        self._open(HarnessError)
        self.redeploy_s = time.monotonic() - began

    def _open(self, forgiven: type[HarnessError]) -> None:
        """Open everything; a second time after an error of that kind."""
        began = time.monotonic()
        try:
            self._stack, self._parts = _open_parts(self.plan, self.env)
        except UsageError:
            raise
        except forgiven as problem:
            logger.warning("%s: is deployed once more: %s", self.plan.cell.name, problem)
            self._stack, self._parts = _open_parts(self.plan, self.env)
        framework = self._parts.framework
        session = framework.session if isinstance(framework, SessionFramework) else object()
        self._session: Hashable = (session, self.plan.cell.source)  # the code that reads another source is cold too
        self.redeploy_s = time.monotonic() - began
        """seconds that the last deployment of this cell took"""

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
        cell.message_bytes,
        entropy,
        stamped,
        create_size_sequence(cell, scenario),
        create_key_sequence(scenario),
        traced=plan.traced,
        duty=float(scenario.elasticity.duty) if scenario.elasticity is not None else 1.0,
    )


def _open_parts(plan: CellPlan, env: RunEnvironment) -> tuple[ExitStack, _Parts]:
    """Open the plugins and send the first messages through. Raises a HarnessError, leaving nothing open."""
    cell, settings = plan.cell, plan.scenario.settings
    require_site(part_of(env.site, cell))
    watch = _StopWatch()
    with ExitStack() as opening:
        source = registry.make_source(cell.source, settings)
        opening.callback(source.close)
        endpoint = open_endpoint(source, cell, env, plan.workers)
        watch.lap("source")
        ordered = endpoint.ordered or (endpoint.ordered_by_key and plan.scenario.load.keys is not None)
        load_generator = plan.load_generator.open(endpoint, env, plan.workers)
        opening.callback(load_generator.close)
        watch.lap("load generator")
        clocks = node_exporter.measure_clock_offset(env.site)
        stamped = clock.local_clock(clocks, theirs=env.site.load is not None)
        work = message_work(plan, stamped)
        framework = registry.make_framework(cell.framework, settings).open(cell, endpoint, work, env)
        opening.callback(framework.close)
        watch.lap("framework")
        ordered = ordered and plan.framework.capabilities.ordered
        parts = _Parts(source, load_generator, framework, ordered, clocks)
        _pass_first_messages(plan, parts)
        watch.lap("first messages")
        logger.info("%s: deployed in %s", cell.name, watch)
        return opening.pop_all(), parts


def _pass_first_messages(plan: CellPlan, parts: _Parts) -> None:
    """Send a few messages and wait until they were processed."""
    rate = FIRST_MESSAGES / FIRST_MESSAGES_S
    spec = replace(_load_spec(plan, 0, rate, time.monotonic(), FIRST_MESSAGES_S), arrivals="constant", profile=())
    parts.load_generator.start(spec)
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
    load, elasticity = plan.scenario.load, plan.scenario.elasticity
    return replace(
        load_spec_of(plan.cell, plan.scenario, rate, seconds, run=run),
        begin=begin,
        cpu_seconds=plan.cell.cpu_seconds,
        arrivals=load.arrivals if elasticity is None else "trace",
        seed=load.seed * 2**16 + run,
        traced=plan.traced,
        profile=tuple(profile_of(load) if elasticity is None else profile_over_time(elasticity.load)),
    )
