"""What HarmonicIO says of itself becomes the spans and messages of a trace."""

import msgspec

from bench.model.trace import MessageEnd, Span
from bench.workload.span_recorder import SpanRecorder
from frameworks.harmonicio.engine.master.queue_trace import QueueEnd, QueueEvents, QueueSpan
from frameworks.harmonicio.engine.observer import Transfer, ack_transfer, data_transfer
from frameworks.harmonicio.engine.wire.frame import EncodedFrame
from frameworks.harmonicio.spans import FrameSpans, queue_events

FRAME = EncodedFrame(session=26, first=7, count=3, size=300, buffers=[])


def test_a_wait_is_a_span_between_others():
    """What was done before it was to read and to acknowledge."""
    recorder = SpanRecorder("PE 1", "work", slot_s=0.0)
    recorder.lap("processing")
    began = recorder._at  # the clock is not moved by hand here
    FrameSpans(recorder).waited(began + 1.0, began + 3.0)
    assert [(span.activity, round((span.end - span.begin) / 1e9)) for span in recorder.take().spans[-2:]] == [
        ("source-read", 1), ("waiting", 2),
    ]  # fmt: skip


def test_both_ends_of_a_frame_have_one_channel():
    """A hand-out and its acknowledgement have different ones, and so have the hops."""
    recorder = SpanRecorder("PE 1", "work", slot_s=0.0)
    observer, at = FrameSpans(recorder), recorder._at + 5.0
    observer.waited(at - 1.0, at)
    observer.received(data_transfer(FRAME, "direct"), at)
    observer.sent(ack_transfer(26, 7, 3, "direct"), at + 1.0)
    received, sent = recorder.take().ends
    assert (received.kind, received.channel, received.id, received.is_sent) == ("data", "1a direct", 7, False)
    assert (sent.kind, sent.channel, sent.id, sent.messages, sent.is_sent) == ("control", "1a direct ack", 7, 3, True)


def test_the_queues_answer_becomes_events_of_the_master():
    """As it comes over HTTP."""
    transfer = Transfer("data", "1a from the queue", 7, 3)
    said = QueueEvents([QueueSpan("wal-commit", 1.0, 2.0)], [QueueEnd(True, transfer, 1.5)])
    heard = msgspec.convert(msgspec.json.decode(msgspec.json.encode(said)), QueueEvents)
    events = queue_events(heard)
    assert events.spans == [Span("master", "wal-commit", 10**9, 2 * 10**9, "queue")]
    assert events.ends == [MessageEnd("master", "data", "1a from the queue", 7, 15 * 10**8, is_sent=True, messages=3)]
