"""A trace as a Chrome trace: JSON that the viewer Perfetto, and the browser Chrome, show as timelines."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from bench.analysis.activity_graph.events import Events
from bench.errors import UsageError
from bench.model.trace import ACTIVITIES, MESSAGE_KINDS, TraceSample

_Event = dict[str, object]
_US = 1000.0
"""Nanoseconds of a microsecond, the unit of the format."""


def write_perfetto(path: Path, events: Events, samples: Sequence[TraceSample]) -> None:
    """Write a trace: a thread for each worker, an arrow for each message, a curve for each metric.

    Raises:
        UsageError: the file cannot be written.
    """
    content = {"displayTimeUnit": "ms", "traceEvents": list(_make_events(events, samples))}
    try:
        path.write_bytes(msgspec.json.encode(content))
    except OSError as problem:
        raise UsageError(f"--perfetto {path}: cannot be written ({problem.strerror})") from None


def _make_events(events: Events, samples: Sequence[TraceSample]) -> Iterator[_Event]:
    for number, worker in enumerate(events.workers):
        yield {"ph": "M", "name": "thread_name", "pid": 1, "tid": number, "args": {"name": worker}}
    spans = events.spans
    rows = zip(*(column.tolist() for column in (spans.worker, spans.activity, spans.operator)), strict=True)
    times = zip(spans.begin.tolist(), spans.end.tolist(), strict=True)
    for (worker, activity, operator), (begin, end) in zip(rows, times, strict=True):
        yield {
            "ph": "X", "name": ACTIVITIES[activity], "cat": events.operators[operator] or "none", "pid": 1,
            "tid": worker, "ts": begin / _US, "dur": (end - begin) / _US,
        }  # fmt: skip
    yield from _make_arrows(events)
    for sample in samples:
        name = f"{sample.entity} {sample.metric}"
        yield {"ph": "C", "name": name, "pid": 1, "ts": sample.at / _US, "args": {"value": sample.value}}


def _make_arrows(events: Events) -> Iterator[_Event]:
    """Yield the begin and the end of an arrow for each message; each lies in the span that is there at its time."""
    messages = events.messages
    kinds, ends = messages.kind.tolist(), (messages.sender.tolist(), messages.receiver.tolist())
    received = np.maximum(messages.sent, messages.received)  # clocks of several hosts differ
    for number, (kind, sender, receiver) in enumerate(zip(kinds, *ends, strict=True)):
        common: _Event = {"name": MESSAGE_KINDS[kind], "cat": "message", "id": number, "pid": 1}
        yield {**common, "ph": "s", "tid": sender, "ts": int(messages.sent[number]) / _US}
        yield {**common, "ph": "f", "bp": "e", "tid": receiver, "ts": int(received[number]) / _US}
