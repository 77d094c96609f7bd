"""HarmonicIO in the harness: exact delivery counts, from its own connector and over a bridge; a death is reported."""

import time

import psutil
import pytest

from bench.config.scenario import Grid, LoadSettings, Scenario, Timing
from bench.config.site import Site
from bench.errors import ProcessDiedError
from bench.model.cell import Cell
from bench.model.measurement import PlannedTrial
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.placement import unreachable_reason
from bench.runner.cell_plan import plan_cell
from bench.runner.deployment import deployed
from bench.runner.trial import run_trial
from bench.units import Seconds, Size
from bench.workload.delivery_counts import DeliveryCounts
from bench.workload.load_spec import LoadSpec
from bench.workload.processing import MessageProcessor
from frameworks.harmonicio.cluster import cluster_of

DEADLINE = 60.0
pytestmark = pytest.mark.real


class RunningSystem:
    """Source, load and framework of one cell."""

    def __init__(self, env: RunEnvironment, source: str, size: int, cost: float) -> None:
        self.cell = Cell("harmonicio", source, size, cost)
        self.source = registry.make_source(source, {})
        self.endpoint = self.source.open(self.cell, env)
        self.load = registry.load_generator_plugin("inline").open(self.endpoint, env, 1)
        framework = registry.make_framework("harmonicio", {})
        self.framework = framework.open(self.cell, self.endpoint, MessageProcessor(size, 0.5), env)

    def run(self, count: int, rate: float = 2000.0) -> DeliveryCounts:
        """Send so many messages; return the delivery counts once all were processed."""
        size, cost = self.cell.message_bytes, self.cell.cpu_seconds
        spec = LoadSpec(
            1, rate, time.monotonic() + 0.05, count / rate, message_bytes=size, cpu_seconds=cost, entropy=0.5
        )
        self.load.start(spec)
        counts, deadline = DeliveryCounts(), time.monotonic() + DEADLINE
        while counts.count + counts.corrupted < count:
            assert time.monotonic() < deadline, f"{counts.count} of {count} messages were processed"
            for report in self.framework.poll():
                counts.add(report)
            time.sleep(0.01)
        return counts

    def close(self) -> None:
        for plugin in (self.framework, self.load, self.source):
            plugin.close()


@pytest.fixture
def deploy(env):
    """Open systems and close them afterwards."""
    systems = []

    def make(source, size, cost=0.0):
        systems.append(RunningSystem(env, source, size, cost))
        return systems[-1]

    yield make
    for system in systems:
        system.close()


@pytest.mark.parametrize(
    ("size", "count"), [(100, 20_000), (10_000, 2000), (1_000_000, 100)], ids=["100 B", "10 kB", "1 MB"]
)
def test_every_message_of_the_connector_is_worked_on_once(deploy, size, count):
    """Messages of every size are processed once."""
    counts = deploy("stream", size).run(count, rate=count)
    assert counts.reconcile({0: count}) == (0, 0)
    assert counts.corrupted == 0


def test_a_cost_is_burnt(deploy):
    """Both PEs spend the CPU cost."""
    counts = deploy("stream", 1000, 0.002).run(300, rate=300)
    assert counts.reconcile({0: 300}) == (0, 0)
    assert counts.cpu_used_s >= counts.cpu_requested_s == pytest.approx(0.6)


@pytest.mark.parametrize("source", ["kafka", "pulsar", "tcp", "files"])
def test_a_bridge_carries_what_a_source_has(deploy, request, source):
    """A bridge carries each message once."""
    if source in ("kafka", "pulsar"):
        request.getfixturevalue(source)
    counts = deploy(source, 1000).run(2000)
    assert (counts.reconcile({0: 2000}), counts.corrupted) == ((0, 0), 0)


def test_what_a_bridge_hands_on_need_not_be_in_order(kafka, env):
    """A bridge reads one part of its source after the other, and what waits for a PE is put together."""
    cell = Cell("harmonicio", "kafka", 100, 0.0)
    scenario = Scenario(
        "bridged",
        ("harmonicio/kafka",),
        Grid((Size(100),)),
        load=LoadSettings(by="inline"),
        timing=Timing(drain=Seconds(20)),
    )
    with deployed(plan_cell(cell, scenario, env.site, env.cores), env) as deployment:
        seen = run_trial(deployment, PlannedTrial(0, 20_000.0, 0.5, 2.0, "search"), lambda _: None)
    assert (seen.sent, seen.lost, seen.duplicated, seen.out_of_order) == (seen.processed, 0, 0, 0)
    assert seen.sent > 0


def test_a_pipe_within_the_harness_is_refused():
    """A bridge could not read it."""
    reason = unreachable_reason("harmonicio", "memory", Site())
    assert reason is not None
    assert reason.startswith("memory exists only within the harness's process")


@pytest.mark.parametrize("source", ["stream", "kafka"])
def test_messages_that_are_longer_than_are_accepted_are_refused(source):
    """Before anything starts, with the bound; the longest that is accepted is not."""
    plugin, most = registry.make_framework("harmonicio", {}), 128 * 2**20
    assert plugin.unsupported_reason(Cell("harmonicio", source, most, 0.0), source) is None
    assert f"{most} bytes at most" in plugin.unsupported_reason(Cell("harmonicio", source, most + 1, 0.0), source)


def test_messages_that_are_longer_than_are_accepted_are_refused_by_their_source():
    """Source and framework give the same reason."""
    source, most = registry.make_source("stream", {}), 128 * 2**20
    assert source.unsupported_reason(Cell("python", "stream", most, 0.0), 0.5) is None
    assert f"{most} bytes at most" in source.unsupported_reason(Cell("python", "stream", most + 1, 0.0), 0.5)


def test_a_dead_pe_is_told(deploy, env):
    """Polling raises ProcessDiedError."""
    system = deploy("stream", 100)
    worker = next(child for child in env.supervisor.children if child.name == "harmonicio-worker")
    psutil.Process(worker.pid).children()[0].kill()
    with pytest.raises(ProcessDiedError, match="PE"):
        system.run(10_000_000)


def test_a_cluster_that_replaces_a_dead_one_starts_none_of_its_pes(deploy, env):
    """They would take CPU time from the next cell; what the dead master had on the disk is gone."""
    deploy("stream", 100)
    master = next(child for child in env.supervisor.children if child.name == "harmonicio-master")
    psutil.Process(master.pid).kill()
    while master.alive():
        time.sleep(0.01)
    deploy("stream", 100).run(1000)
    (stream,) = cluster_of(env).operator.status()["streams"]
    assert stream["wanted"] == stream["pes"] > 0
