"""What a broker has confirmed to our senders is there after it was killed with -9 and started again on its data."""

import time

import confluent_kafka
import numpy as np
import psutil
import pulsar as pulsar_client
import pytest

from bench.config.site import Site
from bench.model.cell import Cell
from bench.model.message_codec import MessageWriter, read
from bench.model.message_filler import make_filler
from bench.plugins import registry
from producers.kafka.server import start_kafka
from producers.kafka.site import KafkaSite
from producers.pulsar.server import start_pulsar

pytestmark = [pytest.mark.campaign, pytest.mark.real]

DEADLINE = 150.0
SIZE, ENTROPY = 1000, 0.5
KILLS, MESSAGES_BETWEEN = 3, 5000


class KilledBroker:
    """A broker of its own, which can be killed and started again on the same ports and data."""

    def __init__(self, name, env, data):
        start = {"kafka": start_kafka, "pulsar": start_pulsar}[name]
        self._name, self._env = name, env
        self._server = start(env.supervisor, cache=env.cache, data=data, note=env.note)
        self._child = self._newest()
        self._command, self._folder = self._process().cmdline(), self._process().cwd()
        self.site = KafkaSite(self._server.address) if name == "kafka" else self._server.address

    def kill_and_restart(self):
        self._child.kill()
        self._env.supervisor.start(self._command, name=self._name, role="source", cwd=self._folder)
        self._child = self._newest()

    def close(self):
        self._child.kill()
        self._server.close()

    def _newest(self):
        return [child for child in self._env.supervisor.children if child.name == self._name][-1]

    def _process(self):
        return psutil.Process(self._child.pid)


@pytest.fixture(params=["kafka", "pulsar"])
def opened(request, env, tmp_path, monkeypatch):
    """A broker, an endpoint at it, and a sender that asks for confirmation by all copies."""
    broker = KilledBroker(request.param, env, tmp_path)
    monkeypatch.setattr(env, "site", Site(sections={request.param: broker.site}))
    source = registry.make_source(request.param, {"kafka": {"acks": "all"}} if request.param == "kafka" else {})
    endpoint = source.open(Cell("python", request.param, SIZE, 0.0), env)
    if request.param == "pulsar":
        with_subscription(endpoint)
    sender = registry.open_sender(endpoint)
    yield broker, endpoint, sender
    sender.close()
    source.close()
    broker.close()


def test_what_was_confirmed_outlives_every_kill(opened):
    """Each message that was taken is confirmed or failed in the end, and no confirmed one is missing."""
    broker, endpoint, sender = opened
    offered = 0
    for kill in range(KILLS + 1):
        offered = send(sender, offered, offered + MESSAGES_BETWEEN)
        if kill < KILLS:
            broker.kill_and_restart()
    confirmed, failed = settled(sender, offered)
    found = {"kafka": read_kafka, "pulsar": read_pulsar}[endpoint.source](endpoint, confirmed)
    assert confirmed >= MESSAGES_BETWEEN
    assert len(found) >= confirmed
    assert found <= set(range(offered))
    assert failed > 0 or found == set(range(offered))


def send(sender, first, end):
    """Offer messages until they were taken, a hundred at a time; the number of the next one."""
    writer = MessageWriter(run=1, producer=0, size=SIZE, cost=0.0, entropy=ENTROPY)
    deadline = time.monotonic() + DEADLINE
    while first < end:
        assert time.monotonic() < deadline, f"message {first} was not taken"
        first += sender.send(writer.write(first, np.zeros(min(100, end - first)), 0.0))
        sender.confirmed()
        time.sleep(0.002)
    return first


def settled(sender, taken):
    """The numbers of confirmed and failed messages, once each is one of both."""
    deadline = time.monotonic() + DEADLINE
    while sum(sender.confirmed()) < taken:
        assert time.monotonic() < deadline, f"{sender.confirmed()} of {taken}"
        time.sleep(0.05)
    return sender.confirmed()


def read_kafka(endpoint, count):
    """The numbers of all messages of a topic, of which there should be so many."""
    reader = confluent_kafka.Consumer({"bootstrap.servers": endpoint.address, "group.id": "history", "log_level": 0})
    reader.assign([confluent_kafka.TopicPartition(endpoint.name, part, 0) for part in range(endpoint.parts)])

    def take():
        messages = reader.consume(1000, 1.0)
        assert not any(message.error() for message in messages)
        return [message.value() for message in messages]

    try:
        return collected(take, count)
    finally:
        reader.close()


def read_pulsar(endpoint, count):
    """The numbers of all messages of a topic, of which there should be so many."""
    client = pulsar_client.Client(endpoint.address, logger=quiet())
    consumer = client.subscribe(endpoint.name, "history", pulsar_client.ConsumerType.Exclusive)

    def take():
        return [message.data() for message in consumer.batch_receive()]

    try:
        return collected(take, count)
    finally:
        client.close()


def with_subscription(endpoint):
    """Have the topic keep its messages for a reader that comes later."""
    client = pulsar_client.Client(endpoint.address, logger=quiet())
    client.subscribe(endpoint.name, "history", initial_position=pulsar_client.InitialPosition.Earliest)
    client.close()


def quiet():
    return pulsar_client.ConsoleLogger(pulsar_client.LoggerLevel.Error)


def collected(take, count):
    """The numbers that came until there are so many, and then until a second brings none."""
    found, deadline = set(), time.monotonic() + DEADLINE
    while (batch := take()) or len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} messages came"
        heads = read(batch, SIZE, make_filler(SIZE, ENTROPY))
        assert heads.corrupted == 0
        found.update(heads.seq.tolist())
    return found
