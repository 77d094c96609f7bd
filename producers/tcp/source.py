"""A TCP socket as a source: the source listens, the framework connects and reads a line for each message."""

import socket

from msgspec import Struct

from bench.config.address import Address
from bench.errors import SiteError
from bench.model.cell import Cell
from bench.model.message_filler import MAX_TEXT_ENTROPY
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint
from producers.tcp.site import TCP_SITE


class TcpSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The address at which the source listens, unless the site file names one (`tcp.listen`)."""

    host: str = "127.0.0.1"
    """an address of this machine that the framework can reach"""
    port: int = 0
    """0 = any that is free"""


class TcpSource:
    """A port; the sender listens there."""

    def __init__(self, settings: TcpSettings) -> None:
        self._settings = settings

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:  # noqa: ARG002  any size and cost will do
        """Return why it cannot carry the cell's messages, in a sentence; None when it can.

        Args:
            cell: any size and cost will do.
            entropy: of the filler: 0 repeats one letter, 1 uses every byte value but newline.
        """
        if entropy > MAX_TEXT_ENTROPY:
            return f"a line cannot carry a binary filler: entropy {entropy:g} is above {MAX_TEXT_ENTROPY:g}"
        return None

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:  # noqa: ARG002  all cells look alike to it
        """Choose a free port and return its endpoint.

        Raises:
            SiteError: the address cannot be listened at.
        """
        host, port = self._settings.host, self._settings.port
        if (site := TCP_SITE.read(env.site)) is not None:
            host, port = Address.parse(site.listen)
        try:
            with socket.create_server((host, port)) as probe:
                port = probe.getsockname()[1]
        except OSError as problem:
            raise SiteError(f"tcp cannot listen at {host}:{port}: {problem.strerror}") from problem
        return Endpoint("tcp", f"{host}:{port}")

    def reset(self) -> None:
        """Do nothing: a trial leaves nothing behind."""

    def close(self) -> None:
        """Do nothing: nothing was opened."""
