"""The state of a link follows the frames that it receives; no socket is needed."""

import pytest

from frameworks.harmonicio.engine.connector.link_state import (
    ANSWER_TIMEOUT_S,
    GRACE_S,
    RETRY_INTERVALS_S,
    SILENCE_TIMEOUT_S,
    LinkState,
    RetrySchedule,
    Settled,
)
from frameworks.harmonicio.engine.errors import ProtocolError
from frameworks.harmonicio.engine.wire.control_messages import Bye, Leases, NodeAddress, Welcome
from frameworks.harmonicio.engine.wire.frame import EncodedFrame, FrameKind, encode_ack, encode_control
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool, FrameReader


def decode(data):
    """Return the frame in some bytes."""
    (frame,) = FrameReader(BufferPool(), 2**20).feed(data)
    return frame


def sent(first, count=2, size=100):
    """Return a frame that was sent."""
    return EncodedFrame(1, first, count, size, [b""])


@pytest.fixture
def state():
    """A link that was welcomed with a credit of 10 messages and 1000 bytes."""
    state = LinkState(disconnected_since=0.0)
    state.receive(decode(encode_control(FrameKind.WELCOME, Welcome("a", 10, 1000, max_body_bytes=500))))
    return state


def test_a_welcome_gives_credit(state):
    """The limit of a message is the receiver's."""
    assert (state.ready, state.available(100), state.max_body_bytes) == (True, 10, 500)


def test_an_ack_settles_frames_and_replaces_the_credit(state):
    """The frames of its range are returned with the number of failed messages."""
    frames = [sent(0), sent(2), sent(4)]
    for frame in frames:
        state.unacked.add(frame)
    assert state.available(1) == 4
    settled = state.receive(decode(encode_ack(1, 0, 4, failed=1, credit=(3, 1000))))
    assert settled == Settled(frames[:2], 1)
    assert (len(state.unacked), state.unacked.messages, state.unacked.bytes, state.available(1)) == (1, 2, 100, 1)


def test_one_message_beyond_the_credit_may_be_sent_alone(state):
    """Otherwise a large message could never be sent."""
    assert state.available(5000) == 1
    for first in (0, 2, 4):
        state.unacked.add(sent(first, size=400))
    assert state.available(5000) == 0


def test_without_credit_nothing_is_available(state):
    """The master's queue is full then."""
    state.receive(decode(encode_ack(0, 0, 0, failed=0, credit=(0, 0))))
    assert state.available(1) == 0


def test_another_instance_does_not_get_the_frames_of_the_first(state):
    """The link drains, and its frames go elsewhere."""
    state.unacked.add(sent(0))
    state.disconnect(1.0)
    with pytest.raises(EOFError):
        state.receive(decode(encode_control(FrameKind.WELCOME, Welcome("b", 10, 1000))))
    assert (state.ready, state.is_lost(1.0, connected=False)) == (False, True)


def test_the_same_instance_is_welcomed_again(state):
    """Its unacknowledged frames stay, to be sent again."""
    state.unacked.add(sent(0))
    state.disconnect(1.0)
    state.receive(decode(encode_control(FrameKind.WELCOME, Welcome("a", 10, 1000))))
    assert (state.ready, len(state.unacked)) == (True, 1)


def test_a_link_is_lost_after_the_grace_time_without_a_connection(state):
    """Only frames that are unacknowledged make it so."""
    state.disconnect(5.0)
    assert not state.is_lost(100.0, connected=False)
    state.unacked.add(sent(0))
    assert [state.is_lost(now, connected=False) for now in (5.0 + GRACE_S, 5.1 + GRACE_S)] == [False, True]


def test_a_link_without_a_lease_is_lost_when_it_is_silent(state):
    """The time begins again with each frame that it receives."""
    state.unleased_since, state.last_received = 5.0, 8.0
    end = 8.0 + SILENCE_TIMEOUT_S
    assert [state.is_lost(now, connected=True) for now in (end, end + 0.1)] == [False, True]


def test_a_bye_makes_a_link_drain_with_its_reason(state):
    """It takes no messages, and is lost once disconnected."""
    assert state.receive(decode(encode_control(FrameKind.BYE, Bye("draining")))) is None
    assert (state.ready, state.refusal) == (False, "draining")
    assert [state.is_lost(0.0, connected=connected) for connected in (True, False)] == [False, True]


def test_leases_are_passed_on_and_other_frames_are_errors(state):
    """A link never receives the frames that it sends."""
    leases = Leases(10.0, [NodeAddress("a", "127.0.0.1", 1)])
    assert state.receive(decode(encode_control(FrameKind.LEASES, leases))) == leases
    with pytest.raises(ProtocolError, match="a RENEW frame does not belong here"):
        state.receive(decode(encode_control(FrameKind.RENEW)))


def test_an_unanswered_hello_is_overdue():
    """The time begins with the attempt."""
    state = LinkState(disconnected_since=0.0)
    state.retry.begin(100.0)
    assert [state.answer_overdue(now) for now in (100.0 + ANSWER_TIMEOUT_S, 100.1 + ANSWER_TIMEOUT_S)] == [False, True]


def test_the_time_between_attempts_grows_to_a_limit():
    """It is that of the schedule."""
    schedule, now, waits = RetrySchedule(), 0.0, []
    for _ in range(6):
        assert schedule.begin(now)
        assert not schedule.begin(now)
        waits.append(schedule.next_at - now)
        now = schedule.next_at
    assert waits == pytest.approx([*RETRY_INTERVALS_S, RETRY_INTERVALS_S[-1], RETRY_INTERVALS_S[-1]])


def test_an_ack_of_a_part_of_a_frame_settles_nothing(state):
    """The connection ends as after any invalid frame, and all its frames are sent again."""
    for first in (0, 2):
        state.unacked.add(sent(first))
    with pytest.raises(ProtocolError, match="an ACK ends at 3, within the frame of messages 2 to 3"):
        state.receive(decode(encode_ack(1, 0, 3, failed=0, credit=(3, 1000))))
    assert (len(state.unacked), state.unacked.messages, state.unacked.bytes) == (2, 4, 200)
