"""The state of a PE's engine deduplicates, merges acknowledgements, and measures the work."""

from types import SimpleNamespace

import pytest

from frameworks.harmonicio.engine.pe.credit import INITIAL_MESSAGES, TARGET_S, CreditWindow
from frameworks.harmonicio.engine.pe.engine_state import EngineState
from frameworks.harmonicio.engine.pe.pending_acks import PendingAcks
from frameworks.harmonicio.engine.wire.frame import decode_ack, encode_frame
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool, FrameReader


def received(messages, first, session=1):
    """Return the frame of some messages as it is received."""
    (frame,) = FrameReader(BufferPool(), 2**20).feed(b"".join(encode_frame(messages, session, first, 0).buffers))
    return frame


def process(state, messages, first, *, queued=False):
    """Return the messages of a frame that were not processed before."""
    frame = received(messages, first)
    return [bytes(message) for batch in state.new_batches(frame, frame.batch(), queued=queued) for message in batch]


def test_messages_that_come_again_are_duplicates():
    """Only the new part of a frame is processed."""
    state = EngineState(0.0)
    assert process(state, [b"a", b"b"], 0) == [b"a", b"b"]
    assert process(state, [b"b", b"c"], 1) == [b"c"]
    assert process(state, [b"a"], 0, queued=True) == []
    assert state.duplicates == 2


def test_waiting_counts_frames_and_raw_messages():
    """It is empty once both are processed."""
    state, connection = EngineState(0.0), SimpleNamespace()
    state.inbox.append((connection, received([b"a", b"b"], 0)))
    state.raw_messages.append((b"raw", None))
    assert (state.waiting, state.is_empty) == (3, False)
    assert state.next_frames(10)[0] is connection
    state.raw_messages.popleft()
    assert (state.waiting, state.is_empty) == (0, True)


def test_the_credit_follows_the_time_of_a_message():
    """It is a quarter of a second's work, shared by the connections."""
    window = CreditWindow()
    assert window.messages == INITIAL_MESSAGES
    window.record(1.0, 100)
    assert window.messages == int(TARGET_S / 0.01)
    assert [window.share(connections)[0] for connections in (1, 2, 1000)] == [25, 13, 1]


def test_adjacent_ranges_are_acknowledged_together():
    """Failed messages are reported once."""
    acks = PendingAcks()
    for first, failed in ((0, 1), (2, 0), (10, 0)):
        acks.add(received([b"a", b"b"], first).header, failed, 0.0)
    frames = FrameReader(BufferPool(), 2**20).feed(acks.take((5, 500)))
    assert [(frame.header.first, frame.header.count) for frame in frames] == [(0, 4), (10, 2)]
    assert [decode_ack(frame) for frame in frames] == [(1, 5, 500), (0, 5, 500)]
    assert not acks


@pytest.mark.parametrize(("frames", "seconds", "may_wait"), [(2, 0.001, True), (2, 0.003, False), (64, 0.0, False)])
def test_an_acknowledgement_waits_for_few_frames_and_a_short_time(frames, seconds, may_wait):
    """The first frame begins the time."""
    acks = PendingAcks()
    waits = [acks.add(received([b"a"], number).header, 0, seconds if number else 0.0) for number in range(frames)]
    assert (waits[0], waits[-1]) == (True, may_wait)
