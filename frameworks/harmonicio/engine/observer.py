"""The observer of a PE, a connector or a master: told of waits and of frames that pass, so that it can record a trace.

There is none unless somebody sets one. Both ends of a frame know it by the same channel and number.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

Hop = Literal["direct", "to the queue", "from the queue"]
"""From a connector to a PE, from a connector to the master, from the master to a PE."""


class Numbered(Protocol):
    """A batch of messages of a session: the header of a frame, or an encoded frame."""

    @property
    def session(self) -> int:
        """Return the session of the connector."""

    @property
    def first(self) -> int:
        """Return the number of the first message within the session."""

    @property
    def count(self) -> int:
        """Return the number of messages."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A frame on its way from one process to another, as both of them know it."""

    kind: Literal["data", "control"]
    channel: str
    number: int
    """within the channel"""
    messages: int


class Observer(Protocol):
    """Called in the thread of what it observes; times are CLOCK_MONOTONIC seconds."""

    def waited(self, began: float, ended: float) -> None:
        """Take in that there was nothing to do but to wait."""

    def sent(self, transfer: Transfer, at: float) -> None:
        """Take in that a frame was sent."""

    def received(self, transfer: Transfer, at: float) -> None:
        """Take in that a frame was received; `at` is when the wait ended that it ended, if it did."""


def lease_transfer(session: int, number: int) -> Transfer:
    """Return the leases of PEs to a connector."""
    return Transfer("control", f"{session:x} leases", number, 0)


def data_transfer(frame: Numbered, hop: Hop) -> Transfer:
    """Return the hand-out of a batch of messages."""
    return Transfer("data", f"{frame.session:x} {hop}", frame.first, frame.count)


def ack_transfer(session: int, first: int, count: int, hop: Hop) -> Transfer:
    """Return the acknowledgement of messages that came by a hop."""
    return Transfer("control", f"{session:x} {hop} ack", first, count)
