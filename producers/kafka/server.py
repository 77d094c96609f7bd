"""An embedded Kafka: one broker that is its own controller (KRaft), on loopback, with bounded memory and disk."""

import contextlib
import shutil
import socket
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from bench.errors import ServiceError, UsageError
from bench.services.embedded_server import EmbeddedServer, start_embedded
from bench.services.java import java
from bench.services.maven_jars import download_jars
from bench.services.ports import LOOPBACK, free_ports
from bench.system.supervisor import Supervisor

WARM_UP_S = 3.0
ANSWER_TIMEOUT_S = 30.0


class KafkaBroker(Struct, frozen=True, forbid_unknown_fields=True):
    """The set-up of an embedded broker."""

    heap_bytes: int = 2**30
    message_bytes: int = 20 * 2**20
    """of the largest batch of messages, and so of the largest message"""
    partitions: int = 2
    """of a topic that does not say its own number"""
    retained_bytes: int | None = None
    """that a topic's partitions keep together; a quarter of the free disk but at most 8 GiB when left out"""
    retained_seconds: int = 3600
    segment_bytes: int = 64 * 2**20
    """a partition deletes whole segments of this size, so it keeps up to so much more than its share"""


def start_kafka(
    supervisor: Supervisor,
    broker: KafkaBroker | None = None,
    *,
    cache: Path,
    data: Path,
    note: Callable[[str], None],
) -> EmbeddedServer[str]:
    """Start a new, empty broker; return it, with its bootstrap address, when it is ready.

    Args:
        supervisor: starts the process.
        broker: its set-up; the default one when left out.
        cache: folder of the jars.
        data: parent of the broker's data folder.
        note: called with a line for the user, before something takes long.

    Raises:
        UsageError: PySpark, Java or the Kafka client is missing.
        ServiceError: The broker does not come up.
    """
    broker, answers = broker or KafkaBroker(), _probe()
    class_path = download_jars("kafka", cache, note) / "*"
    with start_embedded("Kafka", data, note) as start:
        port, controller_port = free_ports(2)
        settings = start.folder / "server.properties"
        settings.write_text(_properties(broker, start.folder, port, controller_port), encoding="utf-8")
        (start.folder / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        command = [java(), *_java_options(broker, start.folder), "-cp", str(class_path)]
        _format(supervisor, command, start.folder)
        command += ["kafka.Kafka", str(settings)]
        child = start.own(supervisor.start(command, name="kafka", role="source", cwd=start.folder), settings)
        child.wait_ready(lambda: answers(port), 60)
        try:
            warm(f"{LOOPBACK}:{port}", WARM_UP_S)
        except ServiceError as problem:
            raise child.exit_error(str(problem)) from problem
    return EmbeddedServer(child, start.folder, f"{LOOPBACK}:{port}")


def _probe() -> Callable[[int], bool]:
    """Return a function that says whether the broker at a port of loopback serves clients.

    Raises:
        UsageError: there is no client to ask with.
    """
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError as error:
        raise UsageError('the embedded Kafka needs a Kafka client; run: pip install "stream-bench[kafka]"') from error

    def answers(port: int) -> bool:
        try:
            socket.create_connection(
                (LOOPBACK, port), timeout=1
            ).close()  # first: the client complains loudly of a closed port
            client = AdminClient({"bootstrap.servers": f"{LOOPBACK}:{port}", "log_level": 0})
            return bool(client.list_topics(timeout=2).brokers)
        except (OSError, KafkaException):
            return False

    return answers


def warm(bootstrap: str, seconds: float, timeout: float = ANSWER_TIMEOUT_S) -> None:
    """Send and fetch single messages for a while, so that the JVM has compiled what every request goes through.

    A cold broker takes 1 ms of CPU for a request, a warm one 0.3 ms; a cell of slow messages would never warm it.

    Args:
        bootstrap: host:port of the broker.
        seconds: for so long.
        timeout: seconds for an answer to a request about a topic.

    Raises:
        ServiceError: the broker refuses, or does not answer in time.
    """
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stubs forget it

    topic, deadline = "warming-up", time.monotonic() + seconds
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
    # without commits: closing the reader would wait for them, 50 s where the broker is gone
    reader = {"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False, "log_level": 0}
    try:
        admin.create_topics([NewTopic(topic, 1, 1)], operation_timeout=timeout)[topic].result(timeout=timeout)
        with contextlib.closing(Consumer(reader)) as consumer:
            consumer.assign([TopicPartition(topic, 0, 0)])
            while time.monotonic() < deadline:
                producer.produce(topic, b"\0" * 1000)
                producer.flush(1)
                consumer.consume(100, 0)
        admin.delete_topics([topic], operation_timeout=timeout)[topic].result(timeout=timeout)
    except (KafkaException, TimeoutError) as problem:
        why = str(problem) or f"no answer within {timeout:g} s"
        raise ServiceError(f"Kafka at {bootstrap} came up but serves nobody: {why}") from problem


def _format(supervisor: Supervisor, command: list[str], folder: Path) -> None:
    """Write the broker's identity into its data folder, without which KRaft does not start."""
    cluster = (
        urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "_")
    )  # a leading - reads as an option
    tool = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(folder / "server.properties")]
    child = supervisor.start([*command, *tool], name="kafka-format", role="source", cwd=folder)
    try:
        if child.wait_end(60) != 0:
            raise child.exit_error()
    finally:
        child.kill()


def _java_options(broker: KafkaBroker, folder: Path) -> list[str]:
    """Return Kafka's own choice of collector, with a heap that cannot grow."""
    heap = f"{broker.heap_bytes // 2**20}m"
    collector = (
        "-XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent"
    )
    logging = f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"
    return ["-server", f"-Xms{heap}", f"-Xmx{heap}", *collector.split(), "-Djava.awt.headless=true", logging]


def _properties(broker: KafkaBroker, folder: Path, port: int, controller_port: int) -> str:
    free = shutil.disk_usage(folder).free
    retained = broker.retained_bytes or min(free // 4, 8 * 2**30)
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": folder / "logs",
        "num.partitions": broker.partitions,
        "auto.create.topics.enable": "false",
        # large messages: what a client may send, what a follower and a reader may fetch
        "message.max.bytes": broker.message_bytes,
        "replica.fetch.max.bytes": broker.message_bytes,
        "replica.fetch.response.max.bytes": 2 * broker.message_bytes,
        "fetch.max.bytes": max(57671680, 2 * broker.message_bytes),
        "socket.request.max.bytes": max(104857600, 2 * broker.message_bytes),
        # bounded disk: small segments, looked at every second from the start, deleted at once
        "log.retention.bytes": retained // broker.partitions,
        "log.retention.ms": broker.retained_seconds * 1000,
        "log.segment.bytes": max(broker.segment_bytes, broker.message_bytes),
        "log.retention.check.interval.ms": 1000,
        "log.initial.task.delay.ms": 1000,
        "log.segment.delete.delay.ms": 1000,
        "log.cleaner.dedupe.buffer.size": 16 * 2**20,
        # one node: no copies, nobody to wait for
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        # one machine for everything: few threads, and a quorum of one needs no heartbeats
        "num.network.threads": 1,
        "num.io.threads": 2,
        "metadata.max.idle.interval.ms": 0,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


_LOGGING = """\
appenders=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{ISO8601} %p %c{1}: %m%n
rootLogger.level=WARN
rootLogger.appenderRefs=console
rootLogger.appenderRef.console.ref=console
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=INFO
"""
