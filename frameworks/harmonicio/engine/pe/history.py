"""What a PE has done of each session, so that a frame that comes again is not run again."""

from collections import OrderedDict

from frameworks.harmonicio.engine.wire.frame import Header
from frameworks.harmonicio.engine.wire.sequence_ranges import Seen

MAX_SESSIONS = 16384


class History:
    """By session and way: a connector's own frames carry a floor, below which nothing comes again.

    What comes through the master's queue may lie below that floor: for its connector it was done when the queue had it.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[int, bool], Seen] = OrderedDict()

    def missing(self, header: Header, *, queued: bool) -> list[tuple[int, int]]:
        """The parts of a frame that were not run, as (first, end)."""
        direct, end = self._of(header.session, queued=False), header.first + header.count
        if not queued:
            direct.raise_floor(header.floor)
            return direct.missing(header.first, end)
        by_queue = self._of(header.session, queued=True)
        return [
            part
            for start, stop in direct.missing(header.first, end, floor=False)
            for part in by_queue.missing(start, stop)
        ]

    def add(self, header: Header, *, queued: bool) -> None:
        """All of a frame was run."""
        self._of(header.session, queued=False).add(header.first, header.count)
        if queued:
            self._of(header.session, queued=True).add(header.first, header.count)

    def _of(self, session: int, *, queued: bool) -> Seen:
        seen = self._seen.get((session, queued))
        if seen is None:
            seen = self._seen[session, queued] = Seen()
            while len(self._seen) > MAX_SESSIONS:
                self._seen.popitem(last=False)
        else:
            self._seen.move_to_end((session, queued))
        return seen
