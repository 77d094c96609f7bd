"""The state of a feeder accounts for every message that it took."""

import pytest

from frameworks.harmonicio.engine.connector.feeder_state import FeederState, OverflowRule
from frameworks.harmonicio.engine.connector.link_state import Settled
from frameworks.harmonicio.engine.wire.frame import EncodedFrame


def feed(state, *counts):
    """Add frames of so many messages; return them."""
    frames = []
    for count in counts:
        frames.append(EncodedFrame(state.session, state.next_number, count, 10, [b""]))
        state.add(frames[-1])
    return frames


def test_the_low_watermark_follows_the_oldest_unacknowledged_frame():
    """Frames may be acknowledged in any order."""
    state = FeederState(1, redeliver=True)
    first, second = feed(state, 3, 2)
    state.settle(Settled([second], 0))
    assert (state.low_watermark, state.unacked) == (0, 3)
    state.settle(Settled([first], 1))
    assert (state.low_watermark, state.unacked, state.acked, state.failed) == (5, 0, 4, 1)


@pytest.mark.parametrize(("redeliver", "counts"), [(True, (0, 3, 1)), (False, (3, 0, 0))])
def test_frames_of_a_lost_pe_are_sent_again_or_have_failed(redeliver, counts):
    """The delivery guarantee decides; failed frames advance the low watermark."""
    state = FeederState(1, redeliver=redeliver)
    state.take_back(feed(state, 3))
    assert (state.failed, state.redelivered, len(state.to_resend)) == counts
    assert state.low_watermark == (0 if redeliver else 3)


@pytest.mark.parametrize(
    ("overflow", "ready_pes", "allowed"),
    [("full", 1, True), ("full", 0, True), ("absent", 1, False), ("absent", 0, True), ("never", 0, False)],
)
def test_the_overflow_rule_allows_the_queue_after_the_credit_timeout(overflow, ready_pes, allowed):
    """Before that it never does."""
    rule = OverflowRule(overflow, 0.5, last_credit=10.0)
    assert [rule.allows(now, ready_pes) for now in (10.4, 10.5)] == [False, allowed]
