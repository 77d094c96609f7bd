"""A place in one partition of a topic: the id of a message, comparable, and as a text that a checkpoint can keep."""

from typing import NamedTuple

import pulsar


class Position(NamedTuple):
    """Ledger, entry of the ledger, and message of the entry where the producer put several into one (else -1)."""

    ledger: int
    entry: int
    message: int

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Return the position that `str` has written. Raises ValueError with the text where it is none."""
        parts = text.split(":")
        try:
            ledger, entry, message = map(int, parts)
        except ValueError:
            raise ValueError(f"a position is ledger:entry:message, three whole numbers, not {text!r}") from None
        return cls(ledger, entry, message)

    @classmethod
    def of(cls, found: "pulsar.MessageId") -> "Position":
        """Return the position of a message's id."""
        return cls(found.ledger_id(), found.entry_id(), found.batch_index())

    def __str__(self) -> str:
        return ":".join(map(str, self))

    def message_id(self) -> "pulsar.MessageId":
        """Return the id of the message here, as the client has it."""
        return pulsar.MessageId(-1, *self)

    def ends(self, end: "Position") -> bool:
        """Return whether a message here is the last one up to `end`, so that none behind it need be waited for."""
        return self == end or (self[:2] == end[:2] and 0 <= end.message <= self.message)

    def beyond(self, end: "Position") -> bool:
        """Return whether a message here lies behind `end`.

        An end without a message of its entry means the whole entry.
        """
        return self[:2] > end[:2] or (self[:2] == end[:2] and 0 <= end.message < self.message)

    @property
    def whole_entry(self) -> bool:
        """Return whether an end here does not tell which message is its last."""
        return self.message < 0


EARLIEST = Position(-1, -1, -1)
