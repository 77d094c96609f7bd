"""Reads a pipe of this process."""

from collections.abc import Sequence

from bench.plugins.plugin import ConsumerPlugin
from bench.plugins.protocols import Endpoint
from bench.system.pipe import Pipe


class MemoryConsumer:
    """Every member reads from the same pipe; each message goes to one of them."""

    def open(self, endpoint: Endpoint, member: int, members: int) -> None:  # noqa: ARG002  a pipe has no parts
        self._pipe = Pipe.named(endpoint.address)

    def take(self, most: int, timeout: float) -> Sequence[bytes]:
        return self._pipe.take(most, timeout)

    def close(self) -> None:
        """The pipe belongs to the source."""


plugin = ConsumerPlugin(open=MemoryConsumer)
