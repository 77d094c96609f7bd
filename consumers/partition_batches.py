"""Batches of messages, each of one partition, that wait to be taken."""

from collections import deque
from typing import TypeVar

Message = TypeVar("Message")


def take_batch(batches: deque[list[Message]], max_messages: int) -> list[Message]:
    """Remove up to `max_messages` messages of the first batch and return them; empty when there is no batch."""
    batch = batches.popleft() if batches else []
    if len(batch) > max_messages:
        batches.appendleft(batch[max_messages:])
    return batch[:max_messages]
