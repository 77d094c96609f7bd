"""The links to the PEs of one stream: followed as leases come and go, and dropped when a PE is lost."""

import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from frameworks.harmonicio.engine.connector.link import Link
from frameworks.harmonicio.engine.connector.link_state import Settled
from frameworks.harmonicio.engine.wire.control_messages import Hello, NodeAddress
from frameworks.harmonicio.engine.wire.frame import EncodedFrame
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool
from frameworks.harmonicio.engine.wire.tls_socket import StreamSocket


@dataclass(frozen=True, slots=True)
class TakenBack:
    """Frames that were unacknowledged when their link was dropped, in the order of sending."""

    frames: list[EncodedFrame]


class LinkSet:
    """Links by the id of their PE. The feeder of a connector and the master's dispatcher each own one."""

    def __init__(self, hello: Hello, buffers: BufferPool, tls: ssl.SSLContext | None = None) -> None:
        self._hello, self._buffers, self._tls = hello, buffers, tls
        self._links: dict[str, Link] = {}

    def __iter__(self) -> Iterator[Link]:
        """Iterate over the links; they may be dropped meanwhile."""
        return iter(list(self._links.values()))

    def get(self, pe_id: str) -> Link | None:
        """Return the link to a PE; None when there is none."""
        return self._links.get(pe_id)

    @property
    def ready(self) -> int:
        """Return the number of PEs that take messages."""
        return sum(link.ready for link in self._links.values())

    @property
    def unacked_bytes(self) -> int:
        """Return the unacknowledged bytes of all links."""
        return sum(link.state.unacked.bytes for link in self._links.values())

    @property
    def has_unacked(self) -> bool:
        """Return whether any frame is unacknowledged."""
        return any(len(link.state.unacked) for link in self._links.values())

    def sockets(self) -> list[tuple[StreamSocket, bool]]:
        """Return (socket, whether to watch it for being writable) of all open connections."""
        return [(link.sock, link.wants_write) for link in self._links.values() if link.sock is not None]

    def follow(self, addresses: Iterable[NodeAddress], now: float) -> list[TakenBack]:
        """Open links to new PEs; drop links without a lease that have nothing unacknowledged, or no connection.

        The other links without a lease stay until their frames are settled or they are lost (`step`).
        """
        leased = {address.id: address for address in addresses}
        for pe_id, address in leased.items():
            if pe_id not in self._links:
                self._links[pe_id] = Link(address, self._hello, self._buffers, self._tls)
        dropped = []
        for pe_id, link in list(self._links.items()):
            if pe_id in leased:
                link.state.unleased_since = None
            elif not len(link.state.unacked) or not link.ready:
                dropped.append(self._drop(link))
            elif link.state.unleased_since is None:
                link.state.unleased_since = now
        return dropped

    def step(self, now: float) -> list[Settled | TakenBack]:
        """Do what can be done without waiting; return settled frames, and those of links that were lost."""
        events: list[Settled | TakenBack] = []
        for link in list(self._links.values()):
            events += [event for event in link.step(now) if isinstance(event, Settled)]
            if link.is_lost(now):
                events.append(self._drop(link))
        return events

    def close(self) -> list[TakenBack]:
        """Drop all links; return their unacknowledged frames."""
        return [self._drop(link) for link in list(self._links.values())]

    def _drop(self, link: Link) -> TakenBack:
        frames = link.state.unacked.take_all()
        link.close()
        self._links.pop(link.address.id, None)
        return TakenBack(frames)
