"""An embedded Pulsar.

Broker, bookie and metadata in one process ("standalone"), on loopback, with bounded memory and disk.
"""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from bench.errors import HarnessError, UsageError
from bench.services.embedded_server import EmbeddedServer, start_embedded
from bench.services.java import java
from bench.services.maven_jars import download_jars
from bench.services.ports import LOOPBACK, free_ports
from bench.system.child import Child
from bench.system.supervisor import Supervisor
from producers.pulsar.admin import Admin
from producers.pulsar.site import PulsarSite

FRAME_OVERHEAD = 2**20
"""Bytes by which the bookie takes larger frames than the broker takes messages: with less, a message near the limit is
refused by the bookie and sent to it again for ever, which looks like a slow broker."""


WARM_UP_S, WARM_UP_TIMEOUT_S = 3.0, 100.0
"""The warm-up's messages, and all of it: each of its requests has 30 s."""


class PulsarBroker(Struct, frozen=True, forbid_unknown_fields=True):
    """The set-up of an embedded Pulsar; the same for broker and bookie."""

    heap_bytes: int = 2**30
    direct_bytes: int = 2**30
    """of memory outside the heap: caches of broker and bookie, and every message that is under way"""
    message_bytes: int = 20 * 2**20
    """of the largest message, or batch of messages"""
    bookies: int = 1
    write_quorum: int = 1
    ack_quorum: int = 1
    """how many bookies keep a message, and how many of them must have it before it is confirmed"""
    synced: bool = True
    """whether the bookie's journal is on the disk, not only in the kernel, before a message is confirmed; Pulsar's
    default"""
    read_bytes: int = 2**20
    """in which the bookie reads its logs; as shipped 4 KiB, so that a message of 10 MB took 2,441 reads and half of
    the CPU"""
    segment_bytes: int = 64 * 2**20
    """of the segments in which a topic deletes what was read, and of the files of the bookie's journal and logs"""

    @property
    def frame_bytes(self) -> int:
        """Return the bookie's own limit (nettyMaxFrameSizeBytes)."""
        return self.message_bytes + FRAME_OVERHEAD


def start_pulsar(
    supervisor: Supervisor,
    broker: PulsarBroker | None = None,
    *,
    cache: Path,
    data: Path,
    note: Callable[[str], None],
) -> EmbeddedServer[PulsarSite]:
    """Start a new, empty Pulsar; return it, with its addresses, when it is ready.

    Args:
        supervisor: starts the process.
        broker: its set-up; the default one when left out.
        cache: folder of the jars.
        data: parent of the server's data folder.
        note: called with a line for the user, before something takes long.

    Raises:
        UsageError: PySpark, Java or the Pulsar client is missing.
        ServiceError: It does not come up.
    """
    broker = broker or PulsarBroker()
    if find_spec("pulsar") is None:
        raise UsageError('the embedded Pulsar needs a Pulsar client; run: pip install "stream-bench[pulsar]"')
    class_path = download_jars("pulsar", cache, note) / "*"
    with start_embedded("Pulsar", data, note) as start:
        port, web_port, bookie_port = free_ports(3)  # several bookies take ports of their own choice
        settings = start.folder / "standalone.conf"
        settings.write_text(_properties(broker, port, web_port), encoding="utf-8")
        (start.folder / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        command = [java(), *_java_options(broker, start.folder), "-cp", str(class_path)]
        command += _starter(broker, start.folder, bookie_port)
        child = start.own(supervisor.start(command, name="pulsar", role="source", cwd=start.folder), settings)
        site = PulsarSite(f"pulsar://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{web_port}")
        child.wait_ready(lambda: _answers(site), 90)
        _warm(supervisor, site, child)
    return EmbeddedServer(child, start.folder, site)


def _answers(site: PulsarSite) -> bool:
    """Return whether topics can be made: their namespace is the last thing that comes into being."""
    try:
        return Admin(site, seconds=2).has_namespace()
    except HarnessError:
        return False


def _warm(supervisor: Supervisor, site: PulsarSite, server: Child) -> None:
    """Send and fetch single messages for a while, so that the JVM compiles what every request needs.

    In a process of its own: destroying a client of a broker that has just started crashed the harness (decision 0218).
    """
    command = [sys.executable, "-m", "producers.pulsar.warm_up", site.service_url, site.admin_url, str(WARM_UP_S)]
    child = supervisor.start(command, name="pulsar-warm-up", role="source")
    try:
        if child.wait_end(WARM_UP_TIMEOUT_S) != 0:
            said = child.log.read_text(encoding="utf-8", errors="replace").strip() or f"exit code {child.exit_code}"
            why = said.splitlines()[-1]
            raise server.exit_error(f"Pulsar at {site.service_url} came up but serves nobody: {why}")
    finally:
        child.kill()


def _starter(broker: PulsarBroker, folder: Path, bookie_port: int) -> list[str]:
    places = {
        "--metadata-dir": folder / "metadata",
        "--bookkeeper-dir": folder / "bookie",
        "--bookkeeper-port": bookie_port,
    }
    options = [str(word) for option in {**places, "--num-bookies": broker.bookies}.items() for word in option]
    only = ["--advertised-address", LOOPBACK, "--no-functions-worker", "--no-stream-storage"]
    return ["org.apache.pulsar.PulsarStandaloneStarter", "--config", str(folder / "standalone.conf"), *options, *only]


def _java_options(broker: PulsarBroker, folder: Path) -> list[str]:
    """Return Pulsar's own choice of collector, memory that cannot grow, and what its libraries need opened."""
    heap, direct = f"{broker.heap_bytes // 2**20}m", f"{broker.direct_bytes // 2**20}m"
    opened = ["java.lang", "java.nio", "java.util.zip", "jdk.internal.misc", "jdk.internal.platform", "sun.net"]
    openings = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opened]
    return [
        f"-Xms{heap}",
        f"-Xmx{heap}",
        f"-XX:MaxDirectMemorySize={direct}",
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=10",
        "-XX:+ParallelRefProcEnabled",
        "-XX:+DoEscapeAnalysis",
        "-XX:-ResizePLAB",
        *openings,
        "--add-opens=java.management/sun.management=ALL-UNNAMED",
        "-Dio.netty.tryReflectionSetAccessible=true",
        f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
        "-Dpulsar.allocator.exit_on_oom=true",
    ]


def _properties(broker: PulsarBroker, port: int, web_port: int) -> str:
    segment_mb = broker.segment_bytes // 2**20
    settings = {
        "clusterName": "standalone",
        "brokerServicePort": port,
        "webServicePort": web_port,
        "bindAddress": LOOPBACK,
        "advertisedAddress": LOOPBACK,
        "listeningInterface": "lo",  # the bookie's
        "allowLoopback": True,
        "allowAutoTopicCreation": False,
        "brokerDeleteInactiveTopicsEnabled": False,
        "systemTopicEnabled": False,
        "topicLevelPoliciesEnabled": False,
        "transactionCoordinatorEnabled": False,
        "webSocketServiceEnabled": False,
        "exposeTopicLevelMetricsInPrometheus": False,
        "loadBalancerEnabled": False,
        # the largest message, and the bookie's frame around it
        "maxMessageSize": broker.message_bytes,
        "nettyMaxFrameSizeBytes": broker.frame_bytes,
        "dispatcherMaxReadSizeBytes": max(
            5 * 2**20, 2 * broker.message_bytes
        ),  # with 5 MiB, one message of 10 MB at a time
        "managedLedgerDefaultEnsembleSize": broker.bookies,
        "managedLedgerDefaultWriteQuorum": broker.write_quorum,
        "managedLedgerDefaultAckQuorum": broker.ack_quorum,
        "activeConsumerFailoverDelayTimeMillis": 0,
        # what was read is forgotten soon
        "managedLedgerMinLedgerRolloverTimeMinutes": 0,
        "managedLedgerMaxLedgerRolloverTimeMinutes": 5,
        "managedLedgerMaxSizePerLedgerMbytes": segment_mb,
        "managedLedgerCacheSizeMB": 256,
        "gcWaitTime": 15_000,
        "logSizeLimit": broker.segment_bytes,
        # the bookie
        "readBufferSizeBytes": broker.read_bytes,
        "journalSyncData": broker.synced,
        # A group of entries in one write. The journal has no checksums: a bookie that was killed between two writes of
        # an entry takes what is there for a whole one, and the topic cannot be opened.
        "journalWriteBufferSizeKB": 2048,
        "journalMaxSizeMB": 4 * segment_mb,
        "journalMaxBackups": 0,
        "dbStorage_writeCacheMaxSizeMb": 128,
        "dbStorage_readAheadCacheMaxSizeMb": 64,
        "dbStorage_rocksDB_blockCacheSize": 16 * 2**20,
        "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
        "diskUsageThreshold": 0.99,
        "diskUsageWarnThreshold": 0.98,
    }
    return "".join(f"{name}={_text(value)}\n" for name, value in settings.items())


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_LOGGING = """\
appenders=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{ISO8601} %p %c{1}: %m%n
rootLogger.level=WARN
rootLogger.appenderRefs=console
rootLogger.appenderRef.console.ref=console
"""
