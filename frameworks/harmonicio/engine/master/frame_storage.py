"""The frames of the master's queue: in memory, on the disk, or both."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from frameworks.harmonicio.engine.master.journal import Journal, RecordLocation
from frameworks.harmonicio.engine.wire.frame import EQUAL, Buffer, FrameHeader

logger = logging.getLogger(__name__)

_COMPACTED_SEGMENTS = 4
"""Segments compacted at a time: more than one, so that the journal shrinks; not all, so that no call takes long."""


@dataclass(slots=True)
class QueuedFrame:
    """A frame in the queue; `data` is header and body, None when both are on the disk only."""

    header: FrameHeader
    data: bytes | None
    location: RecordLocation | None

    @property
    def key(self) -> tuple[int, int]:
        """Return the session and the first number, by which an acknowledgement names it."""
        return self.header.session, self.header.first

    @property
    def is_empty(self) -> bool:
        """Return whether all its messages are empty: the legacy protocol cannot carry them."""
        return self.header.size == (0 if self.header.flags & EQUAL else 4 * self.header.count)


class FrameStorage:
    """The frames of a queue over one journal, or over memory alone where there is none."""

    def __init__(self, journal: Journal | None) -> None:
        self._journal = journal
        self._done_unrecorded, self._compacted = False, 0

    @property
    def has_disk(self) -> bool:
        """Return whether frames can be left on the disk."""
        return self._journal is not None

    def store(self, c_name: str, header: FrameHeader, head: bytes, body: Buffer, *, in_memory: bool) -> QueuedFrame:
        """Keep a frame of a stream: in memory if asked or without a journal, and in a journal that is durable.

        Args:
            c_name: name of the stream.
            header: of the frame.
            head: the same, encoded.
            body: of the frame.
            in_memory: whether the memory has space for it.

        Raises:
            OSError: the journal cannot be written.
        """
        location = None
        if self._journal is not None and (self._journal.durable or not in_memory):
            location = self._journal.append_frame(c_name, head, body)
        kept = in_memory or location is None
        return QueuedFrame(header, b"".join((head, body)) if kept else None, location)

    def data(self, frame: QueuedFrame) -> bytes:
        """Return header and body of a frame; raises OSError when the journal cannot be read."""
        if frame.data is not None:
            return frame.data
        assert self._journal is not None, "a frame that is not in memory is in the journal"
        assert frame.location is not None
        return self._journal.read(frame.location)

    def remove(self, c_name: str, frame: QueuedFrame) -> None:
        """Record in the journal that a frame is done.

        On a full disk the record is missing after a restart, but the space of the frame is free in any case.
        """
        if self._journal is None or frame.location is None:
            return
        if self._journal.durable:
            try:
                self._journal.append_done(c_name, *frame.key, frame.header.count)
                self._done_unrecorded = False
            except OSError as error:
                if not self._done_unrecorded:
                    logger.error("frames that are done from now on may be delivered again after a restart: %s", error)  # noqa: TRY400
                self._done_unrecorded = True
        self._journal.mark_done(frame.location)

    def remove_duplicate(self, frame: QueuedFrame) -> None:
        """Free the space of a frame that the queue holds once more; the journal records nothing of it."""
        if self._journal is not None and frame.location is not None:
            self._journal.mark_done(frame.location)

    def compact(self, frames: Iterable[tuple[str, QueuedFrame]]) -> None:
        """Move frames from the oldest segments to the newest one, if most of the journal is not needed.

        Done once for each new segment. Otherwise one message that waits for long would keep all later ones on the disk.

        Args:
            frames: all that are not done, each after the name of its stream.
        """
        journal = self._journal
        if journal is None or journal.newest == self._compacted or not journal.sparse:
            return
        oldest = journal.oldest(_COMPACTED_SEGMENTS)
        try:
            for c_name, frame in frames:
                if frame.location is not None and frame.location.segment in oldest:
                    frame.location = journal.move(c_name, frame.location)
        except OSError as error:
            logger.error("the journal cannot be made smaller: %s", error)  # noqa: TRY400  one line is enough
        self._compacted = journal.newest

    def recover(self) -> list[tuple[str, QueuedFrame]]:
        """Return the frames of the journal that are not done, in its order, each after the name of its stream.

        Duplicates count once.
        """
        if self._journal is None:
            return []
        frames: dict[tuple[str, int, int], QueuedFrame] = {}
        for record in self._journal.records():
            if record.header is None:
                session, first, _ = record.done
                frames.pop((record.c_name, session, first), None)
            else:
                frames[record.c_name, record.header.session, record.header.first] = QueuedFrame(
                    record.header, None, record.location
                )
        for frame in frames.values():
            if frame.location is not None:
                self._journal.mark_waiting(frame.location)
        self._journal.delete_unneeded()
        return [(c_name, frame) for (c_name, _, _), frame in frames.items()]
