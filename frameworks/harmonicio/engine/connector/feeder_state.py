"""The state of a feeder, without I/O: message numbers, counters, frames to send again, and the overflow rule."""

from collections import deque
from dataclasses import dataclass

from frameworks.harmonicio.engine.connector.link_state import Settled
from frameworks.harmonicio.engine.connector.low_watermark import LowWatermark
from frameworks.harmonicio.engine.connector.options import Options
from frameworks.harmonicio.engine.wire.frame import EncodedFrame


class FeederState:
    """Numbers the messages of one session, and accounts for every one of them."""

    def __init__(self, session: int, *, redeliver: bool) -> None:
        self.session, self._redeliver = session, redeliver
        self.next_number = 0
        self._watermark = LowWatermark()
        self.to_resend: deque[EncodedFrame] = deque()
        self.taken = self.acked = self.failed = self.redelivered = self.queued = 0
        """messages: accepted, acknowledged, failed, sent again, sent to the master's queue"""

    @property
    def unacked(self) -> int:
        """Return the messages that were taken and are neither acknowledged nor failed."""
        return self.taken - self.acked - self.failed

    @property
    def low_watermark(self) -> int:
        """Return the number below which no message is unacknowledged."""
        return self._watermark.lowest(self.next_number)

    def add(self, frame: EncodedFrame) -> None:
        """Add a new frame, whose first message has `next_number`."""
        self._watermark.add(frame.first)
        self.next_number += frame.count
        self.taken += frame.count

    def settle(self, settled: Settled) -> None:
        """Count acknowledged frames."""
        self.acked += sum(frame.count for frame in settled.frames) - settled.failed
        self.failed += settled.failed
        for frame in settled.frames:
            self._watermark.settle(frame.first)

    def take_back(self, frames: list[EncodedFrame]) -> None:
        """Take back the frames of a lost PE: they are sent again, or, where delivery is at most once, have failed."""
        messages = sum(frame.count for frame in frames)
        if self._redeliver:
            self.redelivered += messages
            self.to_resend.extend(frames)
            return
        self.failed += messages
        for frame in frames:
            self._watermark.settle(frame.first)


@dataclass(slots=True)
class OverflowRule:
    """Decides when messages go to the master's queue; times are monotonic seconds."""

    overflow: str
    credit_timeout: float
    last_credit: float
    """when a PE had credit last"""

    @classmethod
    def of(cls, options: Options, now: float) -> "OverflowRule":
        """Return the rule of a connector's options."""
        return cls(options.overflow, options.credit_timeout, now)

    def allows(self, now: float, ready_pes: int) -> bool:
        """Return whether messages may go to the queue, while no PE has credit."""
        if self.overflow == "never" or (self.overflow == "absent" and ready_pes):
            return False
        return now >= self.last_credit + self.credit_timeout
