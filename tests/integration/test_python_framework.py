"""Plain processes read a real source exactly."""

import os
import signal
import time

import pytest

from bench.config.site import Site
from bench.errors import ProcessDiedError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.placement import unreachable_reason
from bench.workload.delivery_counts import DeliveryCounts
from bench.workload.load_spec import LoadSpec
from bench.workload.processing import MessageProcessor

DEADLINE = 100.0


@pytest.fixture(scope="module", params=["kafka", "pulsar", "tcp", "files"])
def system(request, env):
    """Plain before a source, the real broker where it is one, and a load that writes to it; the last test of a source
    kills a worker.
    """
    if request.param in ("kafka", "pulsar"):
        request.getfixturevalue(request.param)
    cell = Cell("python", request.param, 1000, 0.001)
    source = registry.make_source(request.param, {})
    endpoint = source.open(cell, env)
    load = registry.load_generator_plugin("inline").open(endpoint, env, 1)
    framework = registry.make_framework("python", {}).open(cell, endpoint, MessageProcessor(1000, 0.5), env)
    yield load, framework
    for plugin in (framework, load, source):
        plugin.close()


def spec(rate=500.0, seconds=1.0):
    return LoadSpec(1, rate, time.monotonic() + 0.05, seconds, message_bytes=1000, cpu_seconds=0.001, entropy=0.5)


def processed_counts(framework, count):
    """Return the delivery counts once the framework has processed so many messages."""
    counts, deadline = DeliveryCounts(), time.monotonic() + DEADLINE
    while counts.count < count:
        assert time.monotonic() < deadline, f"{counts.count} of {count} messages were processed"
        for report in framework.poll():
            counts.add(report)
        time.sleep(0.01)
    return counts


@pytest.mark.real
def test_python_works_on_every_message_once(system):
    """What was sent is what was processed, at the CPU cost that was asked for."""
    load, framework = system
    load.start(spec())
    counts = processed_counts(framework, 500)
    assert counts.reconcile({0: 500}) == (0, 0)
    assert (counts.corrupted, counts.out_of_order) == (0, 0)
    assert counts.cpu_requested_s == pytest.approx(0.5)
    assert counts.cpu_used_s >= counts.cpu_requested_s


@pytest.mark.real
def test_every_core_has_a_process_of_its_own(system, env):
    """As many as the framework has cores."""
    assert sum(child.name.startswith("python") for child in env.supervisor.children) == env.cores


@pytest.mark.real
def test_a_dead_worker_is_reported(system, env):
    """Polling raises ProcessDiedError."""
    _, framework = system
    worker = next(child for child in env.supervisor.children if child.name.startswith("python"))
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(ProcessDiedError, match="python"):
        processed_counts(framework, 1)


def test_python_refuses_a_source_that_it_cannot_read():
    """The reason says what it could read."""
    framework = registry.make_framework("python", {})
    assert "kafka" in framework.unsupported_reason(Cell("python", "carrier-pigeon", 100, 0.0), "carrier-pigeon")
    reason = unreachable_reason("python", "memory", Site())
    assert reason is not None
    assert reason.endswith("python reads with processes of its own")
