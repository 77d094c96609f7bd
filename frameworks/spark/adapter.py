"""Apache Spark through PySpark, as the harness sees it; what Spark runs is in job.py and the modules it imports."""

import shutil
from itertools import count
from pathlib import Path

from bench.errors import PluginError
from bench.model.cell import Cell
from bench.plugins.protocols import Endpoint, RunEnvironment
from bench.services.maven_jars import cached, jars
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import MessageProcessor
from frameworks.spark.conf import Settings, query_conf, reader_options, session_conf, storage_level
from frameworks.spark.orders import Read, Reader
from frameworks.spark.session import Plan, Session, Slot

__all__ = ["Framework", "Settings"]

_SOURCES = ("tcp", "files", "kafka", "pulsar")
_CONNECTOR = "spark-kafka"
_NUMBERS = count(1)


class Framework:
    """One cell's reading, in a Spark session that outlives it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session: Session | None = None
        self._checkpoint: Path | None = None

    @property
    def batch_interval(self) -> float:
        return float(self._settings.batch_interval)

    def unsupported_reason(self, cell: Cell, endpoint_source: str) -> str | None:  # noqa: ARG002  every size and cost can be tried
        if endpoint_source in _SOURCES:
            return None
        return f"Spark reads {', '.join(_SOURCES)} here, not {endpoint_source}"

    def open(self, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> None:  # noqa: ARG002  the work says it all
        settings, reader = self._settings, self._settings.reader(endpoint.source)
        if endpoint.client.get("chunking"):
            raise PluginError(
                "spark", "open", "its source for Pulsar takes whole messages only; set settings.pulsar.chunking=false"
            )
        self._session = env.cached_resource("spark", Slot).session(_plan(settings, reader, env), env)
        self._checkpoint = env.data / "spark" / f"checkpoint-{next(_NUMBERS)}"
        self._session.send(
            Read(
                reader,
                endpoint.address,
                endpoint.name,
                interval=self.batch_interval,
                work=work,
                options=reader_options(settings, reader, endpoint),
                conf=query_conf(settings, reader, work.message_bytes),
                storage=storage_level(settings),
                checkpoint=str(self._checkpoint),
            )
        )

    def ask(self) -> list[ProcessingReport]:
        assert self._session is not None, "open comes first"
        return self._session.reports()

    def close(self) -> None:
        if self._session is not None:
            self._session.stop_reading()
        if self._checkpoint is not None:
            shutil.rmtree(self._checkpoint, ignore_errors=True)


def _plan(settings: Settings, reader: Reader, env: RunEnvironment) -> Plan:
    """The connector to Kafka is in every session whose jars are there, so that the cells of files and Kafka share one."""
    cores = settings.cores or env.site.cores_of("spark", env.cores)
    wanted = reader == "kafka" or (reader != "receiver" and cached(_CONNECTOR, env.cache))
    connector = jars(_CONNECTOR, env.cache, env.note) if wanted else None
    return Plan(
        session_conf(settings, reader, cores=cores, site=env.site.spark, folder=env.data / "spark"),
        cores,
        connector,
    )
