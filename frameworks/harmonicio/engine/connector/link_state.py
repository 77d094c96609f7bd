"""The state of a link, without I/O: unacknowledged frames, credit, attempts to connect.

Received frames and the passing of time are its events; what they mean for others it returns.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from frameworks.harmonicio.engine.errors import ProtocolError
from frameworks.harmonicio.engine.wire.control_messages import Bye, Leases, Welcome
from frameworks.harmonicio.engine.wire.frame import MAX_BODY_BYTES, EncodedFrame, Frame, FrameKind, decode_ack

ANSWER_TIMEOUT_S = 30.0
"""Time in which a PE must have answered the Hello; one that is busy with a message answers after it."""
RETRY_INTERVALS_S = (0.02, 0.1, 0.5, 1.0)
"""Time between attempts to reach an address; unacknowledged frames wait for the first of them, then go elsewhere."""
GRACE_S = 1.0
"""Time without a connection after which unacknowledged frames go elsewhere."""
SILENCE_TIMEOUT_S = 10.0
"""Time for which a PE without a lease may be silent before its unacknowledged frames go elsewhere."""
MAX_LARGE_FRAMES = 3
"""Frames that may be unacknowledged however large they are: one is sent, one waits, one is processed."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Frames that were acknowledged, and how many of their messages failed."""

    frames: list[EncodedFrame]
    failed: int


class UnackedFrames:
    """Frames that were sent and are not acknowledged, in the order of sending."""

    def __init__(self) -> None:
        self._frames: dict[tuple[int, int], EncodedFrame] = {}
        self.messages = self.bytes = 0

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self._frames)

    def add(self, frame: EncodedFrame) -> None:
        """Add a frame that is being sent."""
        self._frames[frame.session, frame.first] = frame
        self.messages += frame.count
        self.bytes += frame.size

    def settle(self, session: int, first: int, count: int) -> list[EncodedFrame]:
        """Remove the frames of an acknowledged range, and return them.

        Raises:
            ProtocolError: the range ends within a frame; none is removed then.
        """
        at, end, settled = first, first + count, list[EncodedFrame]()
        while at < end and (frame := self._frames.get((session, at))) is not None:
            at += frame.count
            settled.append(frame)
        if at > end:
            raise ProtocolError(f"an ACK ends at {end}, within the frame of messages {settled[-1].first} to {at - 1}")
        for frame in settled:
            del self._frames[session, frame.first]
            self.bytes -= frame.size
            self.messages -= frame.count
        return settled

    def frames(self) -> Iterable[EncodedFrame]:
        """Return all frames."""
        return self._frames.values()

    def take_all(self) -> list[EncodedFrame]:
        """Remove all frames, and return them."""
        frames, self._frames = list(self._frames.values()), {}
        self.messages = self.bytes = 0
        return frames


@dataclass(slots=True)
class RetrySchedule:
    """The times of attempts to connect; monotonic seconds."""

    attempts: int = 0
    next_at: float = 0.0
    last_at: float = 0.0

    def begin(self, now: float) -> bool:
        """Return whether an attempt is due; then it counts as begun."""
        if now < self.next_at:
            return False
        self.next_at = now + RETRY_INTERVALS_S[min(self.attempts, len(RETRY_INTERVALS_S) - 1)]
        self.attempts += 1
        self.last_at = now
        return True


@dataclass(slots=True)
class LinkState:
    """Everything that a link knows; times are monotonic seconds."""

    disconnected_since: float
    unacked: UnackedFrames = field(default_factory=UnackedFrames)
    retry: RetrySchedule = field(default_factory=RetrySchedule)
    credit: tuple[int, int] = (0, 0)
    """messages and bytes that may be unacknowledged"""
    welcome: Welcome | None = None
    """the answer to the Hello; None while there is no connection, or no answer yet"""
    last_instance: str = ""
    draining: bool = False
    unleased_since: float | None = None
    """None while it is leased"""
    last_received: float = 0.0
    refusal: str = ""
    """reason with which the other side closed the connection"""
    error: str = ""
    """why the last connection broke"""

    @property
    def ready(self) -> bool:
        """Return whether it has been welcomed and takes messages once there is credit."""
        return self.welcome is not None and not self.draining

    @property
    def max_body_bytes(self) -> int:
        """Return the longest frame body that the other side accepts."""
        return MAX_BODY_BYTES if self.welcome is None else min(self.welcome.max_body_bytes, MAX_BODY_BYTES)

    def available(self, message_bytes: int) -> int:
        """Return the number of messages of that length for which there is credit.

        A message that exceeds the credit may be sent where nothing is unacknowledged.
        """
        if not self.ready or self.credit[0] == 0:
            return 0
        unacked = self.unacked
        by_bytes = max((self.credit[1] - unacked.bytes) // max(1, message_bytes), int(len(unacked) < MAX_LARGE_FRAMES))
        return max(min(self.credit[0] - unacked.messages, by_bytes), int(not len(unacked)), 0)

    def answer_overdue(self, now: float) -> bool:
        """Return whether the Hello of the current connection was not answered in time."""
        return self.welcome is None and now > self.retry.last_at + ANSWER_TIMEOUT_S

    def is_lost(self, now: float, *, connected: bool) -> bool:
        """Return whether its unacknowledged frames should go elsewhere.

        It was disconnected for too long, or has drained, or has no lease and was silent for too long.
        """
        if self.welcome is None and len(self.unacked) and now > self.disconnected_since + GRACE_S:
            return True
        if self.draining and not connected:
            return True
        if self.unleased_since is None:
            return False
        return now > max(self.unleased_since, self.last_received) + SILENCE_TIMEOUT_S

    def receive(self, frame: Frame) -> Settled | Leases | Welcome | None:
        """Apply a received frame.

        Returns:
            The frames that an ACK settles, or Leases, or a Welcome: then all unacknowledged frames must be sent again.

        Raises:
            ProtocolError: the frame does not belong here, or acknowledges a part of a frame.
            EOFError: another instance answers at the address, which does not know the unacknowledged frames.
        """
        match frame.header.kind:
            case FrameKind.ACK:
                failed, messages, size = decode_ack(frame)
                self.credit = (messages, size)
                header = frame.header
                return Settled(self.unacked.settle(header.session, header.first, header.count), failed)
            case FrameKind.WELCOME:
                return self._receive_welcome(frame.decode_body(Welcome))
            case FrameKind.LEASES:
                return frame.decode_body(Leases)
            case FrameKind.BYE:
                self.draining = True
                self.refusal = frame.decode_body(Bye).reason
                return None
            case kind:
                raise ProtocolError(f"a {kind.name} frame does not belong here")

    def disconnect(self, now: float) -> None:
        """Record that the connection is closed."""
        if self.welcome is not None:
            self.disconnected_since = now
        self.welcome = None

    def _receive_welcome(self, welcome: Welcome) -> Welcome:
        expected, self.last_instance = self.last_instance or welcome.instance, welcome.instance
        if len(self.unacked) and welcome.instance != expected:
            self.draining = True
            raise EOFError
        self.welcome, self.credit = welcome, (welcome.credit_messages, welcome.credit_bytes)
        self.retry.attempts, self.draining = 0, False
        return welcome
