"""What one call of the function is given: a frame, or several small ones of one guest that wait, put together.

A call of a function of a batch costs much the same for one message as for ten, so what has piled up is worked off in fewer calls.
"""

from collections import deque
from collections.abc import Sequence
from typing import TypeVar

from frameworks.harmonicio.engine.wire.frame import EQUAL, Batch, Frame, Header

MAX_BYTES = 2**17
"""Put together, which copies them."""

Guest = TypeVar("Guest")


def portion(inbox: "deque[tuple[Guest, Frame]]", most: int) -> tuple[Guest, list[Frame]]:
    """The oldest frame of the inbox, and those behind it that are like it, `most` messages in all; they leave the inbox."""
    guest, first = inbox.popleft()
    frames, size, count = [first], first.header.size, first.header.count
    while inbox and inbox[0][0] is guest and _alike(first.header, inbox[0][1].header):
        size, count = size + inbox[0][1].header.size, count + inbox[0][1].header.count
        if size > MAX_BYTES or count > most:
            break
        frames.append(inbox.popleft()[1])
    return guest, frames


def joined(parts: Sequence[Batch]) -> list[Batch]:
    """Batches of messages of one length as one; others as they are."""
    if len(parts) < 2 or len({part.message_bytes for part in parts}) > 1 or parts[0].message_bytes is None:
        return list(parts)
    if sum(len(part.payload) for part in parts) > MAX_BYTES:
        return list(parts)
    return [Batch(memoryview(b"".join(part.payload for part in parts)), None, sum(map(len, parts)))]


def _alike(one: Header, other: Header) -> bool:
    """Whether both carry messages of one length within themselves."""
    plain = one.flags == other.flags == EQUAL
    return plain and one.size * other.count == other.size * one.count
