"""Merging of small frames that wait, so that one call of the user's function gets several of them.

A call of a batch function costs much the same for one message as for ten, so fewer calls work off a backlog faster.
"""

from collections import deque
from collections.abc import Sequence
from typing import TypeVar

from frameworks.harmonicio.engine.wire.frame import EQUAL, Batch, Frame, FrameHeader

MAX_MERGED_BYTES = 2**17
"""Largest merged batch: merging copies the messages."""

Connection = TypeVar("Connection")


def take_mergeable(inbox: "deque[tuple[Connection, Frame]]", max_messages: int) -> tuple[Connection, list[Frame]]:
    """Remove the oldest frame from the inbox, and the frames behind it that can be merged with it.

    Args:
        inbox: received frames with their connections, the oldest first; not empty.
        max_messages: most messages of all returned frames together.

    Returns:
        The connection of the frames, and the frames.
    """
    connection, first = inbox.popleft()
    frames, size, count = [first], first.header.size, first.header.count
    while inbox and inbox[0][0] is connection and _mergeable(first.header, inbox[0][1].header):
        size, count = size + inbox[0][1].header.size, count + inbox[0][1].header.count
        if size > MAX_MERGED_BYTES or count > max_messages:
            break
        frames.append(inbox.popleft()[1])
    return connection, frames


def merge_batches(batches: Sequence[Batch]) -> list[Batch]:
    """Return batches of messages of one length as one batch; others unchanged."""
    if len(batches) < 2 or len({batch.message_bytes for batch in batches}) > 1 or batches[0].message_bytes is None:
        return list(batches)
    if sum(len(batch.payload) for batch in batches) > MAX_MERGED_BYTES:
        return list(batches)
    return [Batch(memoryview(b"".join(batch.payload for batch in batches)), None, sum(map(len, batches)))]


def _mergeable(one: FrameHeader, other: FrameHeader) -> bool:
    """Return whether both frames have inline messages of one length."""
    inline = one.flags == other.flags == EQUAL
    return inline and one.size * other.count == other.size * one.count
