"""Several senders serve one cell: every message of each arrives once, and what one of them loses is seen."""

import socket
import time
from contextlib import ExitStack, closing

import numpy as np
import pytest

from bench.config.address import Address
from bench.errors import SiteError
from bench.model.cell import Cell
from bench.model.message_codec import MessageWriter
from bench.plugins import registry
from bench.plugins.environments import environments
from bench.plugins.split_source import open_endpoint
from bench.services.python_environments import missing_reason
from bench.workload.delivery_counts import DeliveryCounts
from bench.workload.load_spec import LoadSpec
from bench.workload.processing import MessageProcessor

DEADLINE = 120.0
SIZE, ENTROPY, SENDERS = 1000, 0.5, 2


@pytest.mark.parametrize(
    ("system", "settings"),
    [
        ("python/tcp", {"python": {"processes": 1}}),
        ("python/tcp", {"python": {"processes": 3}}),
        ("python/files", {}),
        pytest.param("harmonicio/tcp", {}, marks=pytest.mark.real),
        pytest.param("spark/files", {}, marks=pytest.mark.real),
        pytest.param("spark/tcp", {}, marks=pytest.mark.real),
        pytest.param("spark/tcp", {"spark": {"tcp": "socket"}}, marks=pytest.mark.real),
        pytest.param("flink/files", {}, marks=pytest.mark.real),
        pytest.param("flink/tcp", {}, marks=pytest.mark.real),
        pytest.param("flink/tcp", {"flink": {"mode": "datastream"}}, marks=pytest.mark.real),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value or ""),
)
def test_every_message_of_two_locust_workers_is_processed_once(env, system, settings):
    """In the order of its sender, where the source has one; whether or not readers are as many as senders."""
    framework, _, name = system.partition("/")
    if framework in environments() and (reason := missing_reason(environments()[framework], env.cache)) is not None:
        pytest.skip(reason)
    cell, source = Cell(framework, name, SIZE, 0.0), registry.make_source(name, {})
    with ExitStack() as opened:
        opened.callback(source.close)
        endpoint = open_endpoint(source, cell, env, SENDERS)
        load = opened.enter_context(closing(registry.load_generator_plugin("locust").open(endpoint, env, SENDERS)))
        adapter = registry.make_framework(framework, settings)
        running = opened.enter_context(closing(adapter.open(cell, endpoint, MessageProcessor(SIZE, ENTROPY), env)))
        load.start(spec(1000))
        counts = count_messages(running, 1000)
    assert counts.reconcile({0: 500, 1: 500}) == (0, 0)
    ordered = endpoint.ordered and registry.framework_plugin(framework).capabilities.ordered
    assert (counts.corrupted, counts.out_of_order if ordered else 0) == (0, 0)


def test_what_another_reader_took_of_one_sender_is_lost(env):
    """The messages of the other sender are all there."""
    source, writers = registry.make_source("tcp", {}), [write_messages(producer) for producer in range(SENDERS)]
    endpoint = open_endpoint(source, Cell("python", "tcp", SIZE, 0.0), env, SENDERS)
    counts, work = DeliveryCounts(), MessageProcessor(SIZE, ENTROPY)
    with ExitStack() as opened:
        senders = [opened.enter_context(closing(registry.open_sender(endpoint))) for _ in writers]
        reader = opened.enter_context(closing(registry.open_consumer(endpoint)))
        send_all(senders, [next(writer) for writer in writers])
        receive(reader, work, counts, 20)
        thief = opened.enter_context(socket.create_connection(Address.parse(endpoint.address.split(",")[1])))
        send_all(senders, [[], next(writers[1])])
        assert len(thief.recv(10 * (SIZE + 1), socket.MSG_WAITALL)) == 10 * (SIZE + 1)
        reader = opened.enter_context(closing(registry.open_consumer(endpoint)))
        send_all(senders, [next(writer) for writer in writers])
        receive(reader, work, counts, 20)
    assert counts.reconcile({0: 20, 1: 30}) == (10, 0)


def test_a_sender_without_an_address_is_refused(env):
    """The sentence has every address, and why it is not to be had."""
    endpoint = open_endpoint(registry.make_source("tcp", {}), Cell("python", "tcp", SIZE, 0.0), env, SENDERS)
    with ExitStack() as opened:
        for _ in range(SENDERS):
            opened.enter_context(closing(registry.open_sender(endpoint)))
        with pytest.raises(SiteError, match=r"127.0.0.1:\d+: Address already in use, 127.0.0.1:\d+: Address already"):
            registry.open_sender(endpoint)


def spec(count):
    """A load of so many messages within a second, of two workers."""
    begin = time.monotonic() + 0.05
    return LoadSpec(1, count, begin, 1.0, message_bytes=SIZE, cpu_seconds=0.0, entropy=ENTROPY, workers=SENDERS)


def count_messages(running, count):
    """Return the delivery counts once a framework has processed so many messages."""
    counts, deadline = DeliveryCounts(), time.monotonic() + DEADLINE
    while counts.count + counts.corrupted < count:
        assert time.monotonic() < deadline, f"{counts.count} of {count} messages were processed"
        for report in running.poll():
            counts.add(report)
        time.sleep(0.01)
    return counts


def write_messages(producer):
    """Yield the messages of one producer, ten at a time."""
    writer = MessageWriter(run=1, producer=producer, size=SIZE, cost=0.0, entropy=ENTROPY)
    for first in range(0, 1000, 10):
        yield writer.write(first, np.zeros(10), 0.0)


def send_all(senders, batches):
    """Have each sender send its batch; a reader that has just connected is noticed by the next offer."""
    deadline = time.monotonic() + DEADLINE
    for sender, messages in zip(senders, batches, strict=True):
        left = messages
        while left := left[sender.send(left) :]:
            assert time.monotonic() < deadline, "the source takes no more"


def receive(reader, work, counts, count):
    """Count so many messages."""
    deadline = time.monotonic() + DEADLINE
    while count > 0:
        assert time.monotonic() < deadline, f"{count} messages did not come"
        messages = reader.take(100, 0.05)
        count -= len(messages)
        for report in work.process(messages) if messages else ():
            counts.add(report)
