"""Every Spark setting of this plugin: what a competent user sets, what Spark ships, and what the site asks for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from bench.plugins.protocols import Endpoint
from bench.system import host_info
from bench.units import Seconds
from frameworks import kafka_secrets
from frameworks.spark.commands import Reader
from frameworks.spark.site import SparkSite
from frameworks.spark.tasks import messages_at_once

Value = str | int | float | bool
MIN_BLOCK = 0.05
"""Seconds; below it Spark's own advice is that launching the tasks costs more than they do."""

FETCH_WAIT_MS = 10
"""At the end of a topic the consumer asks where it ends, and waits behind its own last fetch: as shipped 500 ms in
every batch."""
POLL_TIMEOUT_MS, API_TIMEOUT_MS = 40_000, 30_000
"""A task that asks a dead broker cannot be interrupted, and keeps its core until both are over: as shipped 120 and
60 s, longer than the next query may take to start."""
AHEAD_BYTES, AHEAD_MESSAGES = 64 * 10**6, 10_000
"""That each task of the Pulsar source fetches ahead: 1,000 messages as shipped are 10 GB where a message has 10 MB."""
COMPACTED_BATCHES = 1000
"""Between two rewrites of the list of all files that a query has ever read; as shipped 10. A rewrite takes 5 ms for
every 1,000 files, and no task runs meanwhile (decision 0219)."""
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""Writes a batch's two checkpoint files in 30 ms instead of 100: the other one starts a `chmod` for each on a local
disk."""


class SparkSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of Spark; README.md says why the defaults are what they are."""

    cores: Annotated[int, Meta(ge=1)] | None = None
    """Tasks that run at once; the run's cores when left out. Each receiver gets one more."""
    batch_interval: Seconds = Seconds(1)
    preset: Literal["competent", "shipped"] = "competent"
    """`competent` tunes Spark's defaults as README.md lists, `shipped` does not; `conf` and `options` override both."""
    driver_memory: Annotated[str, Meta(pattern="^[1-9][0-9]*[mg]$")] | None = None
    """4g when competent, 1g as shipped."""
    tcp: Literal["receiver", "socket"] = "receiver"
    """Spark Streaming's socket receiver, or the socket source of Structured Streaming; one for each sender."""
    clean: Literal["delete", "between trials"] | None = None
    """Who removes files that were read: Spark itself all the time (delete), or the source when a trial is over. Left
    out, Spark does, unless the preset is `shipped`. What a folder of old files costs grows with the length of a trial
    (decision 0220)."""
    conf: Mapping[str, Value] = {}
    """More Spark settings, such as {"spark.python.worker.reuse": false}."""
    options: Mapping[str, Value] = {}
    """More options of the stream's reader, such as {"maxOffsetsPerTrigger": 100000}."""

    def reader(self, source: str) -> Reader:
        """Return the reader of a source."""
        readers: dict[str, Reader] = {"tcp": self.tcp, "kafka": "kafka", "pulsar": "pulsar", "memory": "memory"}
        return readers.get(source, "files")


def session_conf(
    settings: SparkSettings, *, cores: int, receivers: int, site: SparkSite | None, folder: Path
) -> dict[str, str]:
    """Return the settings of a whole session; other settings need another session."""
    slots = cores + receivers
    conf: dict[str, Value] = {
        **(_here(slots) if site is None else _there(site, slots)),
        "spark.app.name": "stream-bench",
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        "spark.driver.memory": _heap(settings),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.adaptive.enabled": False,  # it is off for streams anyway, with a warning
        "spark.sql.streaming.stopTimeout": "8s",
    }
    if receivers and settings.preset == "competent":
        interval = block_interval(settings.batch_interval, cores, receivers)
        conf["spark.streaming.blockInterval"] = f"{interval * 1000:.0f}ms"
    return _texts({**conf, **settings.conf})


def sessions_here(settings: SparkSettings) -> int:
    """Return how many sessions this machine holds at a time: their heaps take at most half of its memory."""
    heap = _heap(settings)
    return max(1, host_info.memory_bytes() // 2 // (int(heap[:-1]) * 2 ** (30 if heap.endswith("g") else 20)))


def block_interval(batch_interval: float, cores: int, receivers: int = 1) -> float:
    """Return the seconds of a receiver's block, which becomes a task.

    One for each core, of all receivers together, so that a batch keeps all cores busy to its end.
    """
    return max(MIN_BLOCK, min(batch_interval, batch_interval * receivers / cores))


def query_conf(settings: SparkSettings, reader: Reader, message_bytes: int) -> dict[str, str]:
    """Return the SQL settings of one cell's query."""
    if settings.preset == "shipped":
        return {}
    conf: dict[str, Value] = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": messages_at_once(message_bytes),
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
    }
    if reader == "files":
        conf["spark.sql.sources.parallelPartitionDiscovery.threshold"] = 1_000_000
        conf["spark.sql.files.openCostInBytes"] = 1024
        conf["spark.sql.streaming.fileSource.log.compactInterval"] = COMPACTED_BATCHES
    return _texts({key: value for key, value in conf.items() if key not in settings.conf})


def reader_options(settings: SparkSettings, reader: Reader, endpoint: Endpoint) -> dict[str, str]:
    """Return the options of the stream's reader."""
    options: dict[str, Value] = {}
    if reader == "files" and deletes_files(settings):
        options["cleanSource"] = "delete"
    if reader == "kafka":
        options |= {f"kafka.{key}": value for key, value in kafka_secrets.kafka_settings(endpoint.client).items()}
        if settings.preset == "competent":
            options["kafka.fetch.max.wait.ms"] = FETCH_WAIT_MS
            options |= {"kafkaConsumer.pollTimeoutMs": POLL_TIMEOUT_MS, "kafka.default.api.timeout.ms": API_TIMEOUT_MS}
    if reader == "pulsar":
        options |= {"tokenFile": endpoint.client["token_file"], "caFile": endpoint.client["ca_file"]}
        if settings.preset == "competent":
            size = int(endpoint.client["message_bytes"])
            options["receiverQueueSize"] = max(1, min(AHEAD_MESSAGES, AHEAD_BYTES // size))
    return _texts({**options, **settings.options})


def deletes_files(settings: SparkSettings) -> bool:
    """Return whether Spark deletes the files that it has read."""
    return settings.clean == "delete" or (settings.clean is None and settings.preset == "competent")


def storage_level(settings: SparkSettings) -> str:
    """Return where a receiver keeps what it took: in memory, or, as shipped, twice and on disk too."""
    return "MEMORY_ONLY" if settings.preset == "competent" else "MEMORY_AND_DISK_2"


def _heap(settings: SparkSettings) -> str:
    return settings.driver_memory or ("4g" if settings.preset == "competent" else "1g")


def _here(slots: int) -> dict[str, Value]:
    return {
        "spark.master": f"local[{slots}]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }


def _there(site: SparkSite, slots: int) -> dict[str, Value]:
    conf: dict[str, Value] = {"spark.master": site.master, "spark.cores.max": slots, **site.conf}
    if site.password_file is not None:  # the secret itself is in a file of the session: see secrets.py
        conf |= {"spark.authenticate": True, "spark.network.crypto.enabled": True}
    return conf if site.driver_host is None else {**conf, "spark.driver.host": site.driver_host}


def _texts(conf: Mapping[str, Value]) -> dict[str, str]:
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in conf.items()}
