"""The embedded Pulsar is a real one: it comes up on loopback, takes large messages, refuses in time, and goes without
a trace.
"""

import time

import numpy as np
import psutil
import pytest
from pyspark.sql.types import StructType

from bench.config.site import Site
from bench.errors import PluginError, UsageError
from bench.model.cell import Cell
from bench.model.message_codec import MessageWriter
from bench.plugins import registry
from consumers.pulsar import backlog
from frameworks.spark.pulsarsource.position import Position
from frameworks.spark.pulsarsource.reading import Range
from frameworks.spark.pulsarsource.source import PulsarStreamReader
from producers.pulsar.admin import Admin
from producers.pulsar.server import FRAME_OVERHEAD, PulsarBroker, _properties, start_pulsar
from producers.pulsar.site import PulsarSite

DEADLINE = 100.0
SMALL = 200_000
"""Bytes of the largest message of a Pulsar that only this file has, and that may die."""


def until(condition, seconds=DEADLINE):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.05)


@pytest.fixture
def opened(env):
    """Opens a source with its sender for a size; closed afterwards."""
    deployed = []

    def make(size=1000, **settings):
        source = registry.make_source("pulsar", {"pulsar": settings})
        deployed.append(source)
        endpoint = source.open(Cell("python", "pulsar", size, 0.0), env)
        deployed.append(registry.open_sender(endpoint))
        return endpoint, deployed[-1]

    yield make
    for plugin in reversed(deployed):
        plugin.close()


@pytest.fixture(scope="module")
def small(env):
    """The settings of a Pulsar that takes small messages only; it ends with the last test."""
    yield {"largest": f"{SMALL} B"}
    env.release(("pulsar", PulsarBroker(message_bytes=SMALL)))


def written(size, count, first=0):
    return MessageWriter(run=1, producer=0, size=size, cost=0.0, entropy=0.5).write(first, np.zeros(count), 0.0)


def read_all(readers, count):
    """Return how many messages each reader got, once all `count` have come."""
    got, deadline = [0] * len(readers), time.monotonic() + DEADLINE
    while sum(got) < count:
        assert time.monotonic() < deadline, f"{sum(got)} of {count} messages came"
        for number, reader in enumerate(readers):
            got[number] += len(reader.take(1000, 0.02))
    for reader in readers:
        reader.take(1000, 0.05)  # which acknowledges the last ones
    return got


@pytest.mark.real
def test_it_listens_on_loopback_only(pulsar, env):
    """Broker, administration and bookie alike."""
    child = next(child for child in env.supervisor.children if child.name == "pulsar")
    listening = [c.laddr.ip for c in psutil.Process(child.pid).net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    assert len(listening) >= 3
    assert {address.rpartition(":")[2] for address in listening} == {"127.0.0.1"}


@pytest.mark.real
def test_a_message_of_10_mb_passes_and_nothing_storms(pulsar, opened, env):
    """The bookie's frames are larger than the broker's messages: no frame is refused, in batches neither."""
    endpoint, sender = opened(10**7)
    reader = registry.open_consumer(endpoint)
    messages = written(10**7, 6)
    assert sender.send(messages) == 6
    assert read_all([reader], 6) == [6]
    reader.close()
    until(lambda: sender.confirmed() == (6, 0))
    log = next(child.log for child in env.supervisor.children if child.name == "pulsar")
    assert "TooLongFrame" not in log.read_text()


@pytest.mark.real
@pytest.mark.parametrize("subscription", ["failover", "shared", "key_shared"])
def test_members_share_a_topic(pulsar, opened, subscription):
    """Each message goes to one of two members, both get some, and nothing is left to read."""
    endpoint, sender = opened(
        subscription=subscription, batching=subscription != "shared"
    )  # a batch goes to one member
    readers = [registry.open_consumer(endpoint, member, 2) for member in range(2)]
    for batch in range(20):
        assert sender.send(written(1000, 20, first=20 * batch)) == 20
    got = read_all(readers, 400)
    assert sum(got) == 400
    assert min(got) > 0
    until(lambda: backlog(endpoint).entries <= endpoint.parts)
    for reader in readers:
        reader.close()
    assert (endpoint.ordered, endpoint.ordered_by_key) == (subscription == "failover", subscription == "key_shared")


@pytest.mark.real
def test_the_backlog_is_told(pulsar, opened):
    """What nobody has read yet has entries and bytes."""
    endpoint, sender = opened()
    reader = registry.open_consumer(endpoint)
    reader.close()
    sender.send(written(1000, 500))
    until(lambda: sender.confirmed() == (500, 0))
    until(lambda: backlog(endpoint).stored_bytes >= 500_000)
    assert backlog(endpoint).entries >= 1


@pytest.mark.real
def test_a_message_above_the_limit_passes_in_pieces(opened, small):
    """Only where the scenario asks for it; without that the cell is refused, with what to do."""
    endpoint, sender = opened(10**6, chunking=True, **small)
    reader = registry.open_consumer(endpoint)
    assert sender.send(written(10**6, 4)) == 4
    assert read_all([reader], 4) == [4]
    reader.close()
    until(lambda: sender.confirmed() == (4, 0))


@pytest.mark.real
def test_a_message_in_pieces_is_not_skipped_by_the_data_source(opened, small):
    """A batch that ends within it fails; one that ends with it has it."""
    endpoint, sender = opened(10**6, chunking=True, **small)
    options = {"serviceUrl": endpoint.address, "topic": endpoint.name, "startingPositions": "earliest"}
    reader = PulsarStreamReader(StructType().add("value", "binary"), options)
    try:
        start = reader.initialOffset()
        assert sender.send(written(10**6, 1)) == 1
        until(lambda: sender.confirmed() == (1, 0))
        (whole,) = reader.partitions(start, reader.latestOffset(start))
        last = Position.parse(whole.end)
        within = Range(whole.part, whole.start, str(last._replace(entry=last.entry - 1)))
        with pytest.raises(RuntimeError, match="sent in pieces"):
            list(reader.read(within))
        assert [batch.num_rows for batch in reader.read(whole)] == [1]
    finally:
        reader.stop()


def test_a_message_above_the_limit_is_refused_clearly():
    """The message is refused before anything starts."""
    source = registry.make_source("pulsar", {"pulsar": {"largest": "5 MB"}})
    assert "settings.pulsar.largest" in source.unsupported_reason(Cell("python", "pulsar", 10**7, 0.0), 0.5)
    assert source.unsupported_reason(Cell("python", "pulsar", 10**6, 0.0), 0.5) is None


def test_a_batch_above_the_limit_is_refused_clearly():
    """It would fail as a whole; where messages are too large to be put together there is none."""
    source = registry.make_source("pulsar", {"pulsar": {"largest": "5 MB", "batch": "8 MB"}})
    assert "settings.pulsar.batch is 8 MB" in source.unsupported_reason(Cell("python", "pulsar", 1000, 0.0), 0.5)
    assert source.unsupported_reason(Cell("python", "pulsar", 4_500_000, 0.0), 0.5) is None


@pytest.mark.real
def test_what_a_dead_pulsar_did_not_confirm_has_failed(opened, small, env, monkeypatch):
    """After the time-out everything taken is one of both, exactly; the next cell finds another Pulsar."""
    monkeypatch.setattr("producers.pulsar.sender.TIMEOUT_S", 2.0)
    _, sender = opened(SMALL // 2, batching=False, **small)
    sender.send(written(SMALL // 2, 3))
    until(lambda: sender.confirmed() == (3, 0))
    [child for child in env.supervisor.children if child.name == "pulsar"][-1].kill()
    sender.send(written(SMALL // 2, 2))
    until(lambda: sum(sender.confirmed()) == 5)
    assert sender.confirmed() == (3, 2)
    endpoint, again = opened(SMALL // 2, batching=False, **small)
    assert again.send(written(SMALL // 2, 1)) == 1
    until(lambda: again.confirmed() == (1, 0))
    assert endpoint.address != ""


def test_an_administration_that_is_not_there_is_one_line():
    """It names the address."""
    with pytest.raises(PluginError, match=r"no answer from http://127\.0\.0\.1:9: "):
        Admin(PulsarSite("pulsar://127.0.0.1:9", "http://127.0.0.1:9"), seconds=2).make_topic("x", 1)


def test_quorums_that_cannot_be_are_a_mistake():
    """Settings with more copies than bookies are an error."""
    with pytest.raises(UsageError, match="write_quorum <= bookies"):
        registry.make_source("pulsar", {"pulsar": {"write_quorum": 2}})


def test_the_bookies_frames_are_larger_than_the_brokers_messages():
    """The frame size exceeds the message size for every limit."""
    text = _properties(PulsarBroker(message_bytes=7 * 2**20), 1, 2)
    assert f"maxMessageSize={7 * 2**20}\n" in text
    assert f"nettyMaxFrameSizeBytes={7 * 2**20 + FRAME_OVERHEAD}\n" in text


def test_a_sites_pulsar_takes_what_pulsar_ships(env, monkeypatch):
    """Without settings.pulsar.largest a message above 5 MiB is refused before a topic is made."""
    monkeypatch.setattr(
        env, "site", Site(sections={"pulsar": PulsarSite("pulsar://127.0.0.1:9", "http://127.0.0.1:9")})
    )
    monkeypatch.setattr(Admin, "make_topic", lambda *_: None)
    with pytest.raises(PluginError, match=r"settings\.pulsar\.largest"):
        registry.make_source("pulsar", {}).open(Cell("python", "pulsar", 10**7, 0.0), env)


@pytest.mark.real
def test_closed_server_is_gone(pulsar, env):
    """Neither process nor data stay; closing again does nothing."""
    before = set(env.data.iterdir()), env.supervisor.children
    server = start_pulsar(
        env.supervisor,
        PulsarBroker(bookies=2, write_quorum=2, ack_quorum=2),
        cache=env.cache,
        data=env.data,
        note=print,
    )
    Admin(server.address).make_topic("copied", 1)
    assert server.alive()
    server.close()
    server.close()
    assert not server.alive()
    assert (set(env.data.iterdir()), env.supervisor.children) == before
