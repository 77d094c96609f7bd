"""One suite for every installed source and its sender: what is offered is confirmed, arrives once, and as it was."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.message_codec import MessageWriter, read
from bench.model.message_filler import make_filler
from bench.plugins import registry
from bench.plugins.plugin import SourcePlugin
from bench.workload.batch_writer import GatheringClient

ENTROPY = 0.5
DEADLINE = 100.0
KEYS_OF_PARTITIONS = [[1, 4, 9], [0, 7, 8], [2, 3, 5, 6]]
"""Of key-0 to key-9, by murmur2 modulo 3: where Kafka's own client sends them."""
OTHER_CLIENT = {"kafka": {"client": "kafka-python"}}


def needs_server(name):
    """Return whether opening the source starts a server."""
    return registry.source_plugin(name).preflight is not SourcePlugin.preflight


def small_queue(name):
    """Return settings with a small queue in the client, if the source has a setting for it."""
    has_queue = "queue" in registry.source_plugin(name).settings.__struct_fields__
    return {name: {"queue": "20 kB"}} if has_queue else {}


SOURCES = [
    pytest.param(name, {}, id=name, marks=[pytest.mark.real] if needs_server(name) else [])
    for name in registry.names("sources")
]
KAFKA_PYTHON = pytest.param("kafka", OTHER_CLIENT, id="kafka with kafka-python", marks=pytest.mark.real)


class OpenSource:
    """A source, its sender, and a reader that began before anything was sent."""

    def __init__(self, name, settings, env, size):
        self.size, self.env, self._next = size, env, 0
        self.source = registry.make_source(name, settings)
        self.endpoint = self.source.open(Cell("python", name, size, 0.0), env)
        self.sender = registry.open_sender(self.endpoint)
        self.reader = registry.open_consumer(self.endpoint)

    def written(self, count):
        """The next messages of one producer."""
        writer, first = MessageWriter(run=1, producer=0, size=self.size, cost=0.0, entropy=ENTROPY), self._next
        self._next += count
        return writer.write(first, np.zeros(count), 0.0)

    def send_pieces(self, count):
        """The next messages of one producer, in two pieces each, until all were taken; what was read meanwhile."""
        writer, first = MessageWriter(run=1, producer=0, size=self.size, cost=0.0, entropy=ENTROPY), self._next
        self._next += count
        heads, rests = writer.write_headers(first, np.zeros(count), 0.0), writer.filler.rows_from(0, first, count)
        deadline, received = time.monotonic() + DEADLINE, []
        while heads:
            taken = self.sender.send_pieces(heads, rests)
            heads, rests = heads[taken:], rests[taken:]
            assert time.monotonic() < deadline, "the source takes no more"
            received += self.reader.take(10_000, 0.001)
        return received

    def send(self, messages):
        """Offer messages until they all were taken; what was read meanwhile, since a full source needs a reader."""
        deadline, received = time.monotonic() + DEADLINE, []
        while messages := messages[self.sender.send(messages) :]:
            assert time.monotonic() < deadline, "the source takes no more"
            received += self.reader.take(10_000, 0.001)
        return received

    def receive(self, count):
        """So many messages, as they came, and none more."""
        deadline, received = time.monotonic() + DEADLINE, []
        while len(received) < count:
            assert time.monotonic() < deadline, f"{len(received)} of {count} messages came"
            received += self.reader.take(10_000, 0.05)
            self.sender.confirmed()
        return received + list(self.reader.take(10_000, 0.1))

    def settled(self):
        """Return (confirmed, failed) once all that was taken is one of both."""
        deadline = time.monotonic() + DEADLINE
        while sum(self.sender.confirmed()) < self._next and time.monotonic() < deadline:
            time.sleep(0.005)
        return self.sender.confirmed()

    def close(self):
        self.reader.close()
        self.sender.close()
        self.source.close()


@pytest.fixture
def deploy(env):
    """Open a source and close it afterwards."""
    deployments = []

    def make(name, settings, size=100):
        deployments.append(OpenSource(name, settings, env, size))
        return deployments[-1]

    yield make
    for one in deployments:
        one.close()


def numbers(messages, size=100):
    """The sequence numbers of intact messages."""
    heads = read(messages, size, make_filler(size, ENTROPY))
    assert heads.corrupted == 0
    return heads.seq.tolist()


@pytest.mark.parametrize(("name", "settings"), [*SOURCES, KAFKA_PYTHON])
@pytest.mark.parametrize(("size", "count"), [(100, 1000), (1_000_000, 20)], ids=["100 B", "1 MB"])
def test_what_is_offered_is_confirmed_and_arrives_once(deploy, name, settings, size, count):
    """Nothing is lost, repeated or changed, and the source's sender counts right."""
    deployment = deploy(name, settings, size)
    received = deployment.send(deployment.written(count))
    received += deployment.receive(count - len(received))
    assert sorted(numbers(received, size)) == list(range(count))
    assert deployment.settled() == (count, 0)


@pytest.mark.parametrize(("name", "settings"), [*SOURCES, KAFKA_PYTHON])
@pytest.mark.parametrize(("size", "count"), [(5000, 300), (1_000_000, 20)], ids=["5 kB", "1 MB"])
def test_messages_in_two_pieces_arrive_whole(deploy, name, settings, size, count):
    """A sender that takes them so loses, repeats and changes nothing."""
    deployment = deploy(name, settings, size)
    if not isinstance(deployment.sender, GatheringClient):
        pytest.skip(f"the sender of {name} takes messages in one piece")
    received = deployment.send_pieces(count)
    received += deployment.receive(count - len(received))
    assert sorted(numbers(received, size)) == list(range(count))
    assert deployment.settled() == (count, 0)


@pytest.mark.parametrize(("name", "settings"), [*SOURCES, KAFKA_PYTHON])
def test_messages_with_keys_arrive_once(deploy, name, settings):
    """Keys, in a source that has them, change nothing of what arrives."""
    if not registry.source_plugin(name).capabilities.keyed:
        pytest.skip(f"messages of {name} have no keys")
    deployment, keys = deploy(name, settings), [b"key-%d" % (number % 7) for number in range(500)]
    assert deployment.sender.send_keyed(deployment.written(500), keys) == 500
    assert sorted(numbers(deployment.receive(500))) == list(range(500))
    assert deployment.settled() == (500, 0)


@pytest.mark.real
@pytest.mark.parametrize("settings", [{}, OTHER_CLIENT], ids=["confluent", "kafka-python"])
def test_messages_of_a_key_share_a_partition_in_their_order(deploy, settings):
    """The one that Kafka's own client would choose: both libraries agree."""
    deployment = deploy("kafka", {"kafka": {"partitions": 3, **settings.get("kafka", {})}})
    readers = [registry.open_consumer(deployment.endpoint, member, 3) for member in range(3)]
    deployment.sender.send_keyed(deployment.written(200), [b"key-%d" % (number % 10) for number in range(200)])
    parts = [numbers(drained(reader)) for reader in readers]
    assert all(part == sorted(part) for part in parts)
    assert [sorted({number % 10 for number in part}) for part in parts] == KEYS_OF_PARTITIONS


@pytest.mark.parametrize(("name", "settings"), SOURCES)
def test_a_part_keeps_its_order(deploy, name, settings):
    """Messages that are read of one part at once ascend, over several sends, if the endpoint promises order."""
    deployment = deploy(name, settings)
    if not deployment.endpoint.ordered:
        pytest.skip(f"{name} promises no order")
    for _ in range(7):
        deployment.send(deployment.written(33))
    found = numbers(deployment.receive(231))
    count = deployment.endpoint.parts
    parts = [[number for number in found if number % count == part] for part in range(count)]
    assert all(part == sorted(part) for part in parts)


@pytest.mark.parametrize(("name", "settings"), [source for source in SOURCES if source.id != "files"])
def test_a_full_source_takes_less_and_goes_on_later_without_loss(deploy, name, settings):
    """Fewer taken than offered is back-pressure: what was taken arrives, and what was not can be offered again."""
    deployment, left, offered = deploy(name, settings or small_queue(name)), [], 0
    deadline = time.monotonic() + DEADLINE
    while not left:
        assert time.monotonic() < deadline, "the source never pushed back"
        messages = deployment.written(4000)
        offered += len(messages)
        left = messages[deployment.sender.send(messages) :]
    received = deployment.send(left)
    received += deployment.receive(offered - len(received))
    assert sorted(numbers(received)) == list(range(offered))
    assert deployment.settled() == (offered, 0)


@pytest.mark.parametrize(("name", "settings"), SOURCES)
def test_what_was_read_can_be_cleared_away(deploy, name, settings):
    """Afterwards messages pass as before."""
    deployment = deploy(name, settings)
    deployment.send(deployment.written(10))
    deployment.receive(10)
    deployment.source.reset()
    deployment.send(deployment.written(5))
    assert sorted(numbers(deployment.receive(5))) == [10, 11, 12, 13, 14]


@pytest.mark.parametrize(("name", "settings"), SOURCES)
def test_a_cell_has_nothing_of_the_one_before(deploy, name, settings):
    """A reader of the next cell sees that cell's messages only."""
    before = deploy(name, settings)
    before.send(before.written(10))
    before.close()
    deployment = deploy(name, settings)
    deployment.send(deployment.written(3))
    assert sorted(numbers(deployment.receive(3))) == [0, 1, 2]


@pytest.mark.parametrize(("name", "settings"), [*SOURCES, KAFKA_PYTHON])
def test_closing_twice_does_no_harm(deploy, name, settings):
    """Neither does closing a source that was never opened."""
    deployment = deploy(name, settings)
    opened = [deployment.sender, deployment.sender, deployment.source, deployment.source]
    closed = [plugin.close() for plugin in (*opened, registry.make_source(name, settings))]
    assert closed == [None] * 5  # none raises, and there is nothing to say


def test_tcp_refuses_a_binary_filler():
    """A line cannot carry a newline."""
    assert "binary" in registry.make_source("tcp", {}).unsupported_reason(Cell("spark", "tcp", 100, 0.0), 0.9)


def test_tcp_takes_nothing_without_a_reader(deploy):
    """Messages that nobody would get are not taken, and so not lost."""
    deployment = deploy("tcp", {})
    deployment.reader.close()
    assert deployment.sender.send(deployment.written(10)) == 0


def test_a_new_tcp_reader_begins_with_a_whole_message(deploy):
    """The one that its predecessor got only in part comes again."""
    deployment = deploy("tcp", {}, size=10**7)
    assert deployment.sender.send(deployment.written(1)) == 1
    former, deployment.reader = deployment.reader, registry.open_consumer(deployment.endpoint)
    assert numbers(deployment.receive(1), 10**7) == [0]
    former.close()


def test_a_new_tcp_reader_begins_with_a_whole_message_also_of_pieces(deploy):
    """A message that was taken in two pieces and got only in part comes again in whole."""
    deployment = deploy("tcp", {}, size=10**7)
    writer = MessageWriter(run=1, producer=0, size=10**7, cost=0.0, entropy=ENTROPY)
    heads, rests = writer.write_headers(0, np.zeros(1), 0.0), writer.filler.rows_from(0, 0, 1)
    assert deployment.sender.send_pieces(heads, rests) == 1
    deployment._next = 1
    former, deployment.reader = deployment.reader, registry.open_consumer(deployment.endpoint)
    assert numbers(deployment.receive(1), 10**7) == [0]
    former.close()


def test_unfinished_files_are_never_in_the_watched_folder(deploy):
    """They are written in a folder beside it, and are gone from there when they are complete."""
    deployment = deploy("files", {})
    deployment.send(deployment.written(10))
    watched = Path(deployment.endpoint.address)
    assert len(list(watched.iterdir())) == 10
    assert [len(list(folder.iterdir())) for folder in watched.parent.iterdir() if folder != watched] == [0]


def test_files_leave_nothing_behind(deploy):
    """The cell's folder goes with its source."""
    deployment = deploy("files", {})
    deployment.send(deployment.written(10))
    deployment.source.close()
    assert not Path(deployment.endpoint.address).parent.exists()


def test_kafka_refuses_acks_that_confirm_nothing():
    """Nobody could count what was sent."""
    assert "no confirmations" in registry.make_source("kafka", {"kafka": {"acks": 0}}).unsupported_reason(
        Cell("python", "kafka", 100, 0.0), 0.5
    )


def test_kafka_python_without_its_checksums_is_a_mistake(monkeypatch):
    """It would be fifty times slower; the extra that brings them is named."""
    monkeypatch.setitem(sys.modules, "crc32c", None)
    with pytest.raises(UsageError, match=r"crc32c.*stream-bench\[kafka\]"):
        registry.make_source("kafka", OTHER_CLIENT)


@pytest.mark.real
def test_kafka_shares_messages_evenly_among_partitions(deploy):
    """Partitions get messages in turn, also over several sends."""
    deployment = deploy("kafka", {"kafka": {"partitions": 3}})
    for _ in range(5):
        deployment.send(deployment.written(7))
    deployment.settled()
    readers = [registry.open_consumer(deployment.endpoint, member, 3) for member in range(3)]
    deployment.send(deployment.written(31))
    assert sorted(len(drained(reader)) for reader in readers) == [10, 10, 11]


@pytest.mark.real
def test_what_a_dead_kafka_did_not_confirm_has_failed(deploy, env, monkeypatch):
    """After the time-out everything taken is one of both, exactly."""
    monkeypatch.setattr("producers.kafka.client.TIMEOUT_S", 2.0)
    deployment = deploy("kafka", {}, size=11 * 10**6)  # so large that it gets a broker of its own
    deployment.send(deployment.written(3))
    assert deployment.settled() == (3, 0)
    [child for child in env.supervisor.children if child.name == "kafka"][-1].kill()
    deployment.send(deployment.written(2))
    assert deployment.settled() == (3, 2)


def drained(reader):
    """All that comes until nothing has come for a second."""
    received, deadline = [], time.monotonic() + DEADLINE
    while (batch := reader.take(1000, 1.0)) and time.monotonic() < deadline:
        received += batch
    reader.close()
    return received
