"""Every Flink option of this plugin: of the cluster, of a job, and of its source; README.md says why."""

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from bench.model.cell import Cell
from bench.plugins.protocols import Endpoint
from bench.services.ports import LOOPBACK
from bench.units import Seconds, Size
from frameworks.flink.commands import FILES, KAFKA, SOCKET, Mode
from frameworks.kafka_secrets import kafka_settings

Value = str | int | float | bool
_ADAPTIVE = "jobmanager.adaptive-scheduler.executing."
_ELASTIC: Mapping[str, Value] = {
    "jobmanager.scheduler": "adaptive",
    f"{_ADAPTIVE}cooldown-after-rescaling": "1 s",  # 30 s as shipped, in which no other change is looked at
    f"{_ADAPTIVE}resource-stabilization-timeout": "1 s",  # 60 s as shipped, for slots that are there already
    "metrics.fetcher.update-interval": 500,  # 10 s as shipped
}
"""Of a cluster whose jobs change their parallelism while they run."""
Memory = Annotated[str, Meta(pattern="^[1-9][0-9]*[mg]$(?!\n)")]
MAX_BATCH_CPU_S = 0.2
"""CPU time that the messages of a bundle may ask for. While Python works on a bundle, its subtask takes no message. A
bundle ends when a thread of Beam wakes up next, which samples 97, 118, 144, 175, 212, 256 ... ms after the bundle's
begin: a bundle with 0.1 s of work lasted 0.118 s. With 0.2 s little is lost."""
GATHERED_MESSAGES, GATHERED_BYTES, GATHERED_CPU_S = 256, 2**20, 0.005
"""Of messages that come one by one and are processed at once. Each call of the work costs 0.13 ms besides them, which
was 0.9 of the time for a message of 100 B; a message that no other one follows waits for 0.1 s at most."""
MAX_FETCH_BYTES = 16 * 2**20
"""Of a partition at once: 1 MiB as shipped, which a message may exceed, but only alone."""
LOOK_INTERVAL_MS = 500
"""Milliseconds between two looks into a folder. Each lists all files in it, which took 12 µs of CPU time a file: with
10,000 files and 100 ms, all of a core."""
MAX_LINE_BYTES = 2 * 10**6
"""Of a message from a socket. Flink's reader takes 8 KiB at a time, and searches all that it has for the end of the
line again each time: by itself it read 35 messages/s of 1 MB, and 0.4 of 10 MB."""
DATASTREAM_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "kafka": ("properties.*",),
    "files": ("path", "source.monitor-interval"),
}
"""By source: the options of a connector of the Table API that a source of the DataStream API takes, too (job.py)."""
_LOGIN_MODULE = "org.apache.flink.kafka.shaded.org.apache.kafka.common.security.plain.PlainLoginModule"


class FlinkSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of Flink; README.md says why the defaults are what they are."""

    cores: Annotated[int, Meta(ge=1)] | None = None
    """parallelism of the job, and task slots; when left out the run's cores, or `elasticity.most` of that kind"""
    mode: Mode = "table"
    """a pandas UDF of the Table API, which gets batches, or a function of the DataStream API, which gets one message"""
    batch: Size = Size(8 * 10**6)
    """bytes of the messages that go to Python at once"""
    batch_messages: Annotated[int, Meta(ge=1)] = 20_000
    """messages that go to Python at once"""
    batch_time: Seconds = Seconds(0.05)
    """for which messages may wait for others to go to Python with"""
    checkpoint_interval: Seconds = Seconds(10)
    task_memory: Memory = "3g"
    """of the TaskManager's JVM, everything together; its Python workers are not in it"""
    conf: Mapping[str, Value] = {}
    """more Flink options, of the cluster or the job, such as {"pipeline.object-reuse": false}"""
    options: Mapping[str, Value] = {}
    """more options of the source's connector, such as {"properties.max.poll.records": 500}; it refuses those that it
    does not know. `mode: datastream` takes `properties.*` for kafka, `path` and `source.monitor-interval` for files"""


class Ports(Struct, frozen=True):
    """The ports of a cluster on this machine."""

    rest: int
    rpc: int


def cluster_conf(settings: FlinkSettings, slots: int, *, elastic: bool = False) -> dict[str, str]:
    """Return the options of a cluster of its own; a cell that needs others needs another cluster.

    Args:
        settings: of the scenario.
        slots: of the cluster.
        elastic: whether the parallelism of its jobs changes while they run.
    """
    return _texts(
        {
            "jobmanager.memory.process.size": "1g",
            "taskmanager.memory.process.size": settings.task_memory,
            "taskmanager.memory.managed.size": "128m",  # state is on the heap; RocksDB would use it
            "taskmanager.memory.network.min": "64m",
            "taskmanager.memory.network.max": "64m",
            "taskmanager.memory.task.off-heap.size": "512m",  # Arrow's and gRPC's buffers for the Python workers
            "taskmanager.numberOfTaskSlots": slots,
            "web.submit.enable": False,
            **(_ELASTIC if elastic else {}),
            **settings.conf,
        }
    )


def local_conf(ports: Ports, folder: Path) -> dict[str, str]:
    """Return the options that keep a cluster on loopback and in a folder."""
    return _texts(
        {
            "jobmanager.rpc.address": LOOPBACK,
            "jobmanager.rpc.port": ports.rpc,
            "jobmanager.bind-host": LOOPBACK,
            "taskmanager.host": LOOPBACK,
            "taskmanager.bind-host": LOOPBACK,
            "rest.address": LOOPBACK,
            "rest.bind-address": LOOPBACK,
            "rest.port": ports.rest,
            "rest.bind-port": ports.rest,
            "io.tmp.dirs": folder / "tmp",
            "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
        }
    )


def job_conf(settings: FlinkSettings, cell: Cell, *, parallelism: int, python: str) -> dict[str, str]:
    """Return the options of one cell's job.

    Args:
        settings: of the scenario.
        cell: the cell.
        parallelism: how many subtasks process messages.
        python: the interpreter of Flink's Python workers.
    """
    most = max_messages(settings, cell)
    return _texts(
        {
            "pipeline.name": cell.name,
            "pipeline.object-reuse": True,
            "parallelism.default": parallelism,
            "execution.checkpointing.interval": f"{round(settings.checkpoint_interval * 1000)} ms",
            "execution.checkpointing.mode": "EXACTLY_ONCE",
            "restart-strategy.type": "disable",  # a death is a result; a job that starts again would hide it
            "python.executable": python,
            "python.execution-mode": "process",
            "python.fn-execution.bundle.size": most,
            "python.fn-execution.arrow.batch.size": most,
            "python.fn-execution.bundle.time": round(settings.batch_time * 1000),
            **settings.conf,
        }
    )


def max_messages(settings: FlinkSettings, cell: Cell) -> int:
    """Return how many messages of a cell go to Python at once, at most; 1 at least."""
    by_cost = int(MAX_BATCH_CPU_S / cell.cpu_seconds) if cell.cpu_seconds else settings.batch_messages
    return max(1, min(by_cost, settings.batch_messages, int(settings.batch) // cell.message_bytes))


def gathered_messages(cell: Cell) -> int:
    """Return how many messages of a cell are processed at once where Flink gives them one by one; 1 at least."""
    by_cost = int(GATHERED_CPU_S / cell.cpu_seconds) if cell.cpu_seconds else GATHERED_MESSAGES
    return max(1, min(by_cost, GATHERED_MESSAGES, GATHERED_BYTES // cell.message_bytes))


def source_options(settings: FlinkSettings, endpoint: Endpoint, most: int) -> dict[str, str]:
    """Return the options of what reads an endpoint; a socket has no connector, and no options of a user.

    Raises:
        SiteError: a file that the endpoint names cannot be read.
    """
    if endpoint.source == "kafka":
        return kafka_options(settings, endpoint, most)
    if endpoint.source == "tcp":
        return {"connector": SOCKET, "addresses": endpoint.address}
    return _texts(
        {
            "connector": FILES,
            "path": f"file://{endpoint.address}",
            "source.monitor-interval": f"{LOOK_INTERVAL_MS} ms",
            **settings.options,
        }
    )


def kafka_options(settings: FlinkSettings, endpoint: Endpoint, most: int) -> dict[str, str]:
    """Return the options of Flink's connector to Kafka.

    It reads from the beginning: the topic is the cell's own, and "latest" would be looked up when a subtask reads for
    the first time, so that messages before that would be missed.

    Raises:
        SiteError: a file that the endpoint names cannot be read.
    """
    client: dict[str, Value] = {
        "max.partition.fetch.bytes": MAX_FETCH_BYTES,
        "max.poll.records": max(500, most),
        **kafka_settings(endpoint.client, login_module=_LOGIN_MODULE),
    }
    return _texts(
        {
            "connector": KAFKA,
            "topic": endpoint.name,
            "properties.bootstrap.servers": endpoint.address,
            "scan.startup.mode": "earliest-offset",
            **{f"properties.{key}": value for key, value in client.items()},
            **settings.options,
        }
    )


def refused_option(settings: FlinkSettings, source: str) -> str | None:
    """Return the first of a user's source options that `mode: datastream` would drop; None where there is none."""
    if settings.mode != "datastream":
        return None
    taken = DATASTREAM_OPTIONS.get(source, ())
    return next((key for key in settings.options if not any(fnmatchcase(key, one) for one in taken)), None)


def config_text(conf: Mapping[str, str]) -> str:
    """Return options as Flink's config.yaml."""
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in conf.items())


def _texts(conf: Mapping[str, Value | Path]) -> dict[str, str]:
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in conf.items()}
