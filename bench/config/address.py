"""Network addresses, host:port, as site files and endpoints have them."""

from typing import Annotated, NamedTuple

from msgspec import Meta

_PORT = "(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})"
_HOST = r"(\[[0-9a-fA-F:]+\]|[^\s,:/\[\]]+)"
PATTERN = f"{_HOST}:{_PORT}"
HostPort = Annotated[str, Meta(pattern=rf"^{PATTERN}$(?!\n)", description="host:port")]
"""The type of a field that holds an address."""
Host = Annotated[str, Meta(pattern=rf"^{_HOST}$(?!\n)", description="a host, an IPv6 address in brackets")]
"""The type of a field that holds an address without its port."""


class Address(NamedTuple):
    """A host and a port, in the order that socket functions take them."""

    host: str
    """a name, an IPv4 address, or an IPv6 address without brackets"""
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the address written as host:port, an IPv6 host in brackets.

        Raises:
            ValueError: There is no port.
        """
        host, _, port = text.rpartition(":")
        return cls(host.strip("[]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
