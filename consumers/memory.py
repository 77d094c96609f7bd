"""Reads a pipe of this process."""

from collections.abc import Sequence

from bench.plugins.plugin import ConsumerPlugin
from bench.plugins.protocols import Endpoint
from bench.system.pipe import Pipe


class MemoryConsumer:
    """A reader of the pipe; all members read the same one, and each message goes to one of them."""

    def __init__(self, endpoint: Endpoint, member: int, members: int) -> None:  # noqa: ARG002  a pipe has no parts
        self._pipe = Pipe.named(endpoint.address)

    def take(self, max_messages: int, timeout: float) -> Sequence[bytes]:
        """Return up to `max_messages` messages of one part, as soon as there are any; none after `timeout` seconds."""
        return self._pipe.take(max_messages, timeout)

    def close(self) -> None:
        """Do nothing: the pipe belongs to the source."""


plugin = ConsumerPlugin(open=MemoryConsumer)
