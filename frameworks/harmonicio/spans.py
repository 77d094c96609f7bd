"""The trace of HarmonicIO: what a PE or a connector tells its observer, and what the master says of its queue."""

import contextlib
import threading
import time
from queue import Empty, SimpleQueue

import msgspec

from bench.model.trace import Activity, MessageEnd, Span, TraceEvents
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import NO_RUN
from bench.workload.span_recorder import NoRecorder, SpanRecorder
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.engine.master.queue_trace import QueueEvents
from frameworks.harmonicio.engine.observer import Transfer
from frameworks.harmonicio.engine.operator_client import OperatorClient

MASTER, QUEUE = "master", "queue"
"""Worker and operator of the master's queue."""
ASK_INTERVAL_S = 0.5
"""Between two requests for what the queue did."""
_END_TIMEOUT_S = 5.0


class FrameSpans:
    """An observer that records the waits of a thread, and the ends of the frames that it sends and receives."""

    def __init__(self, spans: SpanRecorder | NoRecorder) -> None:
        self._spans = spans

    def waited(self, began: float, ended: float) -> None:
        """Record a wait; what was done since the last lap was to read and to acknowledge."""
        self._spans.lap("source-read", at=began)
        self._spans.lap("waiting", at=ended)

    def sent(self, transfer: Transfer, at: float) -> None:
        """Record one end of a frame."""
        self._spans.add_sent(transfer.kind, transfer.channel, transfer.number, at, messages=transfer.messages)

    def received(self, transfer: Transfer, at: float) -> None:
        """Record the other end of a frame, if there was nothing to do until then."""
        self._spans.add_received(transfer.kind, transfer.channel, transfer.number, at)


class QueueSpans:
    """The queue of a master on this machine in a trace: a thread asks for what it did, until `close`.

    Args:
        operator: of the master.
    """

    def __init__(self, operator: OperatorClient) -> None:
        self._operator, self._stopped = operator, threading.Event()
        self._heard: SimpleQueue[TraceEvents] = SimpleQueue()
        self._thread = threading.Thread(target=self._ask, daemon=True, name="queue trace")
        self._thread.start()

    def received(self) -> list[ProcessingReport]:
        """Return reports of no messages with what was heard since the last call."""
        reports: list[ProcessingReport] = []
        with contextlib.suppress(Empty):
            while True:
                reports.append(ProcessingReport(time.monotonic(), NO_RUN, [], trace=self._heard.get_nowait()))
        return reports

    def close(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join(_END_TIMEOUT_S)

    def _ask(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(HarmonicError):  # a master that is gone is noticed elsewhere
                self._heard.put(queue_events(msgspec.convert(self._operator.trace(), QueueEvents)))
            self._stopped.wait(ASK_INTERVAL_S)


def queue_events(events: QueueEvents) -> TraceEvents:
    """Return what the master's queue did as events of a trace."""
    spans = [
        Span(MASTER, msgspec.convert(one.activity, Activity), _to_ns(one.begin), _to_ns(one.end), QUEUE)
        for one in events.spans
    ]
    ends = [
        MessageEnd(
            MASTER, one.transfer.kind, one.transfer.channel, one.transfer.number, _to_ns(one.at),
            one.is_sent, one.transfer.messages,
        )
        for one in events.ends
    ]  # fmt: skip
    return TraceEvents(spans, ends=ends)


def _to_ns(seconds: float) -> int:
    return round(seconds * 1e9)
