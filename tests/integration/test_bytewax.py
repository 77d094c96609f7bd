"""Bytewax reads a real Kafka exactly, in order, and says when it cannot go on."""

import itertools
import os
import signal
import time

import pytest

from bench.errors import ProcessDiedError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.services.python_environments import missing_reason
from bench.workload.delivery_counts import DeliveryCounts
from bench.workload.load_spec import LoadSpec
from bench.workload.processing import MessageProcessor
from frameworks.bytewax.adapter import ENVIRONMENT
from tests.cpu_cost import assert_spent

pytestmark = pytest.mark.real

DEADLINE_S = 100.0
COUNT, RATE = 2000, 4000.0


@pytest.fixture(params=[1, 2], ids=["one process", "two processes"])
def system(request, env, kafka):
    """Bytewax before a topic of three partitions, with so many processes, and a load that writes to it."""
    if (reason := missing_reason(ENVIRONMENT, env.cache)) is not None:
        pytest.skip(reason)
    cell = Cell("bytewax", "kafka", 1000, 0.0001)
    source = registry.make_source("kafka", {"kafka": {"partitions": 3}})
    endpoint = source.open(cell, env)
    load = registry.load_generator_plugin("inline").open(endpoint, env, 1)
    settings = {"bytewax": {"processes": request.param}}
    framework = registry.make_framework("bytewax", settings).open(cell, endpoint, MessageProcessor(1000, 0.5), env)
    yield load, framework
    for plugin in (framework, load, source):
        plugin.close()


def counts_of(load, framework, run):
    """Send a run's messages; return the counts once the framework has processed all of them."""
    spec = LoadSpec(run, RATE, time.monotonic() + 0.05, COUNT / RATE, 1000, cpu_seconds=0.0001, entropy=0.5)
    load.start(spec)
    counts, deadline = DeliveryCounts(), time.monotonic() + DEADLINE_S
    while counts.count + counts.corrupted < COUNT:
        assert time.monotonic() < deadline, f"{counts.count} of {COUNT} messages were processed"
        for report in framework.poll():
            counts.add(report)
        load.poll()
        time.sleep(0.01)
    return counts


def poll_until(framework, deadline):
    """Poll until the framework says that it is gone, or until the deadline."""
    while time.monotonic() < deadline:
        framework.poll()
        time.sleep(0.01)


def test_bytewax_works_on_every_message_once(system):
    """In the order of each partition, at the CPU cost that was asked for; also in the next run."""
    runs = itertools.count(1)

    def spend():
        counts = counts_of(*system, next(runs))
        assert counts.reconcile({0: COUNT}) == (0, 0)
        assert (counts.corrupted, counts.out_of_order, counts.negative) == (0, 0, 0)
        assert counts.cpu_requested_s == pytest.approx(COUNT * 0.0001)
        return counts.cpu_used_s, counts.cpu_requested_s

    for _ in range(2):
        assert_spent(spend)


def test_a_dead_process_is_reported(system, env):
    """Polling raises ProcessDiedError."""
    _, framework = system
    process = next(child for child in env.supervisor.children if child.name.startswith("bytewax"))
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + DEADLINE_S
    with pytest.raises(ProcessDiedError, match="bytewax"):
        poll_until(framework, deadline)


def test_other_sources_are_refused():
    """The reason says which one it reads."""
    framework = registry.make_framework("bytewax", {})
    assert framework.unsupported_reason(Cell("bytewax", "kafka", 100, 0.0), "kafka") is None
    assert "a connector for kafka" in framework.unsupported_reason(Cell("bytewax", "tcp", 100, 0.0), "tcp")
