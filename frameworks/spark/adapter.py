"""Apache Spark through PySpark, as the harness sees it; what Spark runs is in job.py and the modules it imports."""

import shutil
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from bench.errors import PluginError
from bench.model.cell import Cell
from bench.plugins.environment import RunEnvironment
from bench.plugins.placement import place
from bench.plugins.protocols import Endpoint
from bench.services.maven_jars import download_jars, has_jars
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import MessageProcessor
from frameworks.spark.commands import Read
from frameworks.spark.conf import SparkSettings, query_conf, reader_options, session_conf, sessions_here, storage_level
from frameworks.spark.session import Session, SessionPlan, Slot
from frameworks.spark.site import SPARK_SITE

__all__ = ["SparkFramework", "SparkSettings"]

_SOURCES = ("tcp", "files", "kafka", "pulsar")
CONNECTOR_JARS = "spark-kafka"
_NUMBERS = count(1)


class SparkFramework:
    """Queries, one a cell, in Spark sessions that outlive them."""

    def __init__(self, settings: SparkSettings) -> None:
        self._settings = settings

    @property
    def batch_interval(self) -> float:
        """Return the seconds between two moments at which it shows progress."""
        return float(self._settings.batch_interval)

    def unsupported_reason(self, cell: Cell, source: str) -> str | None:  # noqa: ARG002  every size and cost can be tried
        """Return why it cannot process the cell from that source, in a sentence; None when it can."""
        if source in _SOURCES:
            return None
        return f"Spark reads {', '.join(_SOURCES)} here, not {source}"

    def open(self, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> "RunningQuery":  # noqa: ARG002  the work says it all
        """Start to process the endpoint's messages; return once they are read.

        Raises:
            PluginError: its messages come in pieces, or Spark cannot read them.
            SiteError: a file that the site or the endpoint names cannot be read.
            UsageError: PySpark or Java is missing.
            ServiceError: Spark does not start or ends, or its jars cannot be had.
        """
        settings, reader = self._settings, self._settings.reader(endpoint.source)
        if endpoint.client.get("chunking"):
            raise PluginError(
                "spark", "open", "its source for Pulsar takes whole messages only; set settings.pulsar.chunking=false"
            )
        plan = _plan(settings, endpoint.source, env, senders=endpoint.parts)
        session = env.cached_resource("spark", Slot).session(plan, env)
        checkpoint = env.data / "spark" / f"checkpoint-{next(_NUMBERS)}"
        read = Read(
            reader,
            endpoint.address,
            endpoint.name,
            interval=self.batch_interval,
            work=work,
            options=reader_options(settings, reader, endpoint),
            conf=query_conf(settings, reader, work.message_bytes),
            storage=storage_level(settings),
            checkpoint=str(checkpoint),
        )
        return RunningQuery(session, read, checkpoint)


class RunningQuery:
    """The query of one cell; its session outlives it."""

    def __init__(self, session: Session, read: Read, checkpoint: Path) -> None:
        self._session, self._checkpoint = session, checkpoint
        with ExitStack() as opening:
            opening.callback(self.close)
            session.send(read)
            opening.pop_all()  # it stays open

    @property
    def session(self) -> str:
        """Return the name of the session that serves the cell."""
        return self._session.name

    def poll(self) -> list[ProcessingReport]:
        """Return what was processed since the last call.

        Raises:
            ProcessDiedError: the session cannot go on.
        """
        return self._session.reports()

    def close(self) -> None:
        """Stop; idempotent."""
        self._session.stop_reading()
        shutil.rmtree(self._checkpoint, ignore_errors=True)


def prepare(settings: SparkSettings, cell: Cell, env: RunEnvironment) -> None:
    """Start the session of a cell with one sender, unless it would end one that was started before."""
    slot = env.cached_resource("spark", Slot)
    plan = _plan(settings, cell.source, env, senders=1)
    if slot.fits(plan):
        slot.session(plan, env)


def _plan(settings: SparkSettings, source: str, env: RunEnvironment, *, senders: int) -> SessionPlan:
    """Return the plan of a session; each sender of a receiver's source has a receiver of its own.

    The connector to Kafka is in every session whose jars are there, so that the cells of files and Kafka share
    one.
    """
    reader = settings.reader(source)
    receivers = senders if reader == "receiver" else 0
    cores = settings.cores or place("spark", source, env.site, env.cores).cores
    wanted = reader == "kafka" or (reader != "receiver" and has_jars(CONNECTOR_JARS, env.cache))
    connector = download_jars(CONNECTOR_JARS, env.cache, env.note) if wanted else None
    site = SPARK_SITE.read(env.site)
    conf = session_conf(settings, cores=cores, receivers=receivers, site=site, folder=env.data / "spark")
    if site is None:
        return SessionPlan(conf, cores, connector, side_by_side=sessions_here(settings))
    return SessionPlan(conf, cores, connector, password_file=site.password_file)
