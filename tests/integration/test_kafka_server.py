"""The embedded Kafka is a real one: it comes up, takes large messages, keeps its disk bounded, and goes without a
trace.
"""

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.errors import ProcessDiedError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.services.embedded_server import EmbeddedServer
from bench.system.supervisor import Supervisor
from producers.kafka.server import KafkaBroker, start_kafka

confluent_kafka = pytest.importorskip("confluent_kafka", reason="the kafka extra is not installed")
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402  after the skip

pytestmark = pytest.mark.real

CACHE = Path.home() / ".cache" / "stream-bench"


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    folder = tmp_path_factory.mktemp("kafka")
    with Supervisor(folder / "registry", folder / "logs") as supervisor:
        yield supervisor


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def before(supervisor: Supervisor, data: Path) -> tuple[object, object]:
    """The data and the children before the server was started."""
    return set(data.iterdir()), supervisor.children


@pytest.fixture(scope="module")
def server(supervisor: Supervisor, data: Path, before: tuple[object, object]) -> Iterator[EmbeddedServer[str]]:
    broker = KafkaBroker(heap_bytes=2**29, segment_bytes=2**20, message_bytes=11 * 10**6, retained_bytes=4 * 10**6)
    server = start_kafka(supervisor, broker, cache=CACHE, data=data, note=lambda _: None)
    yield server
    server.close()


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.1)


def topic(server: EmbeddedServer[str], name: str) -> str:
    admin = AdminClient({"bootstrap.servers": server.address, "log_level": 0})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(timeout=20)
    return name


def producer(server: EmbeddedServer[str]) -> "confluent_kafka.Producer":
    return confluent_kafka.Producer(
        {"bootstrap.servers": server.address, "message.max.bytes": 11 * 10**6, "log_level": 0}
    )


@pytest.mark.parametrize("size", [100, 10_000_000], ids=["100 B", "10 MB"])
def test_message_goes_through(server: EmbeddedServer[str], size: int) -> None:
    """A message, small or as large as the largest cell's, is confirmed and read back whole."""
    name, sender = topic(server, f"whole-{size}"), producer(server)
    sender.produce(name, b"x" * size)
    assert sender.flush(30) == 0
    reader = confluent_kafka.Consumer(
        {"bootstrap.servers": server.address, "group.id": "g", "message.max.bytes": 11 * 10**6, "log_level": 0}
    )
    reader.assign([confluent_kafka.TopicPartition(name, 0, 0)])
    message = reader.poll(30)
    reader.close()
    assert message is not None
    assert (message.error(), len(message.value())) == (None, size)


def test_disk_is_bounded(server: EmbeddedServer[str]) -> None:
    """What exceeds the retained bytes is forgotten within seconds: the oldest offset moves on."""
    name, sender = topic(server, "bounded"), producer(server)
    for _ in range(40):
        sender.produce(name, b"x" * 10**6)
    assert sender.flush(30) == 0
    reader = confluent_kafka.Consumer({"bootstrap.servers": server.address, "group.id": "g", "log_level": 0})
    partition = confluent_kafka.TopicPartition(name, 0)
    until(lambda: reader.get_watermark_offsets(partition, timeout=10)[0] > 20)
    reader.close()


def test_broker_is_reached_from_this_machine_only(server: EmbeddedServer[str]) -> None:
    """Its address is the loopback interface's."""
    assert server.address.startswith("127.0.0.1:")


def test_server_that_does_not_come_up_leaves_nothing(supervisor: Supervisor, data: Path) -> None:
    """A broker that cannot start is an error with its log's last lines, and neither process nor data stay."""
    before = set(data.iterdir()), supervisor.children
    with pytest.raises(ProcessDiedError, match="Too small maximum heap"):
        start_kafka(supervisor, KafkaBroker(heap_bytes=2**20), cache=CACHE, data=data, note=lambda _: None)
    assert (set(data.iterdir()), supervisor.children) == before


def test_closed_server_is_gone(
    server: EmbeddedServer[str], supervisor: Supervisor, data: Path, before: tuple[object, object]
) -> None:
    """After close there is no process, no child and no data; closing again does nothing. It ends the tests' server."""
    assert server.alive()
    server.close()
    server.close()
    assert not server.alive()
    assert (set(data.iterdir()), supervisor.children) == before


def test_a_closed_sender_leaves_no_producer_to_the_garbage_collector(env: RunEnvironment) -> None:
    """It would destroy the producer in any thread, which can crash the process."""
    source = registry.make_source("kafka", {})
    before = producers()
    gc.disable()
    try:
        sender = registry.open_sender(source.open(Cell("python", "kafka", 100, 0.0), env))
        assert producers() == before + 1
        sender.close()
        assert producers() == before
    finally:
        gc.enable()
        source.close()


def producers() -> int:
    return sum(isinstance(each, confluent_kafka.Producer) for each in gc.get_objects())
