"""Processed messages that wait for their acknowledgement; pure, every call gets the time."""

from frameworks.harmonicio.engine.wire.frame import FrameHeader, encode_ack

_MAX_DELAYED_FRAMES = 64
"""Frames whose acknowledgement may wait for the frames behind them."""
_MAX_DELAY_S = 0.002


class PendingAcks:
    """Processed ranges of one connection; adjacent ones are acknowledged together."""

    def __init__(self) -> None:
        self._ranges: list[list[int]] = []
        self._frames, self._since, self._failed = 0, 0.0, 0

    def __bool__(self) -> bool:
        """Return whether anything is processed and not acknowledged."""
        return bool(self._ranges)

    @property
    def ranges(self) -> list[tuple[int, int, int]]:
        """Return (session, first, count) of each range."""
        return [(session, first, count) for session, first, count in self._ranges]

    def add(self, header: FrameHeader, failed: int, now: float) -> bool:
        """Add a processed frame of which `failed` messages failed; return whether its acknowledgement may wait."""
        self._failed += failed
        if not self._ranges:
            self._frames, self._since = 0, now
        self._frames += 1
        last = self._ranges[-1] if self._ranges else None
        if last is not None and last[0] == header.session and last[1] + last[2] == header.first:
            last[2] += header.count
        else:
            self._ranges.append([header.session, header.first, header.count])
        return self._frames < _MAX_DELAYED_FRAMES and now < self._since + _MAX_DELAY_S

    def take(self, credit: tuple[int, int]) -> bytes:
        """Return the ACK frames of everything pending, which is pending no more; `credit` is (messages, bytes)."""
        failed, self._failed = self._failed, 0
        ranges, self._ranges = self._ranges, []
        first = [encode_ack(*part, failed=failed, credit=credit) for part in ranges[:1]]
        return b"".join(first + [encode_ack(*part, failed=0, credit=credit) for part in ranges[1:]])
