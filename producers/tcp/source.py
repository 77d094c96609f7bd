"""A TCP socket as a source: the source listens, the framework connects and reads a line for each message."""

from contextlib import ExitStack
from typing import Annotated

from msgspec import Meta, Struct

from bench.config.address import Address
from bench.errors import SiteError
from bench.model.cell import Cell
from bench.model.message_filler import MAX_TEXT_ENTROPY
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint
from bench.services.ports import listen_at
from producers.tcp.site import TCP_SITE


class TcpSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The address at which the source listens, unless the site file names one (`tcp.listen`)."""

    host: str = "127.0.0.1"
    """an address of this machine that the framework can reach"""
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """0 = any that is free; several senders also take the ports that follow it"""


class TcpSource:
    """A port for each sender, which listens there."""

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
        """Choose a free port of this machine and return its endpoint.

        Raises:
            SiteError: the address cannot be listened at.
        """
        return self._open_here(env, 1)

    def open_split(self, cell: Cell, env: RunEnvironment, senders: int) -> Endpoint:  # noqa: ARG002  as above
        """Return an endpoint with a port for each sender: of the site's load hosts, or a free one of this machine.

        Raises:
            SiteError: an address of this machine cannot be listened at.
        """
        site = TCP_SITE.read(env.site)
        if site is None or env.site.load is None:
            return self._open_here(env, senders)
        return Endpoint("tcp", ",".join(site.load_hosts[:senders]), parts=senders)

    def reset(self) -> None:
        """Do nothing: a trial leaves nothing behind."""

    def close(self) -> None:
        """Do nothing: nothing was opened."""

    def _open_here(self, env: RunEnvironment, senders: int) -> Endpoint:
        host, port = self._settings.host, self._settings.port
        if (site := TCP_SITE.read(env.site)) is not None:
            host, port = Address.parse(site.listen)
        return Endpoint("tcp", ",".join(_free_addresses(host, port, senders)), parts=senders)


def _free_addresses(host: str, port: int, count: int) -> list[str]:
    """Return so many addresses at which nobody listens: of a port and those that follow it, or of any for port 0."""
    free: list[str] = []
    with ExitStack() as probes:
        for number in range(count):
            wanted = Address(host, port + number if port else 0)
            try:
                probe = probes.enter_context(listen_at(wanted))
            except OSError as problem:
                raise SiteError(f"tcp cannot listen at {wanted}: {problem.strerror}") from problem
            free.append(str(Address(host, probe.getsockname()[1])))
    return free
