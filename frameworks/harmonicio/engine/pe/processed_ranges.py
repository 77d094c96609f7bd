"""The messages of each session that a PE has processed, so that a frame that is sent again is not processed again."""

from collections import OrderedDict

from frameworks.harmonicio.engine.wire.frame import FrameHeader
from frameworks.harmonicio.engine.wire.sequence_ranges import SequenceRanges

MAX_SESSIONS = 16384


class ProcessedRanges:
    """Processed ranges by session and path: direct from a connector, or through the master's queue.

    Frames of a connector carry a low watermark, below which nothing comes again. Frames of the queue may lie below it:
    the connector regarded them as done once the queue had them.
    """

    def __init__(self) -> None:
        self._ranges: OrderedDict[tuple[int, bool], SequenceRanges] = OrderedDict()

    def missing(self, header: FrameHeader, *, queued: bool) -> list[tuple[int, int]]:
        """Return the parts of a frame that were not processed, as (first, end); `queued` = through the queue."""
        direct, end = self._of(header.session, queued=False), header.first + header.count
        if not queued:
            direct.advance_low_watermark(header.low_watermark)
            return direct.missing(header.first, end)
        by_queue = self._of(header.session, queued=True)
        return [
            part
            for start, stop in direct.missing(header.first, end, use_low_watermark=False)
            for part in by_queue.missing(start, stop)
        ]

    def add(self, header: FrameHeader, *, queued: bool) -> None:
        """Add all messages of a frame."""
        self._of(header.session, queued=False).add(header.first, header.count)
        if queued:
            self._of(header.session, queued=True).add(header.first, header.count)

    def _of(self, session: int, *, queued: bool) -> SequenceRanges:
        ranges = self._ranges.get((session, queued))
        if ranges is None:
            ranges = self._ranges[session, queued] = SequenceRanges()
            while len(self._ranges) > MAX_SESSIONS:
                self._ranges.popitem(last=False)
        else:
            self._ranges.move_to_end((session, queued))
        return ranges
