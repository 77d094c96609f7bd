"""A framework of one thread: the smallest plugin that satisfies the protocol."""

from contextlib import closing
from functools import partial

from msgspec import Struct

from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Consumer, Endpoint
from bench.plugins.reporting_thread import ReportingThread
from bench.workload.processing import MessageProcessor

TAKE_TIMEOUT_S = 0.05


class OneThreadSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the reader."""

    max_messages: int = 1000
    """messages taken at once"""


class OneThreadFramework:
    """Takes messages and does their work, one batch after the other, in a thread of the harness."""

    batch_interval = 0.0

    def __init__(self, settings: OneThreadSettings) -> None:
        self._settings = settings

    def unsupported_reason(self, cell: Cell, source: str) -> str | None:  # noqa: ARG002  any size and cost will do
        """Return why it cannot read the source; None when it can."""
        return registry.missing_consumer(source)

    def open(self, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> ReportingThread:  # noqa: ARG002  needs a thread only
        """Start to read; return the running thread, whose reports are polled."""
        return ReportingThread("onethread", partial(self._run, registry.open_consumer(endpoint), work))

    def _run(self, consumer: Consumer, work: MessageProcessor, thread: ReportingThread) -> None:
        with closing(consumer):
            while not thread.wait():
                messages = consumer.take(self._settings.max_messages, TAKE_TIMEOUT_S)
                for report in work.process(messages) if messages else ():
                    thread.report(report)
