"""Network addresses, host:port, as site files and endpoints have them."""

from typing import Annotated, NamedTuple

from msgspec import Meta

PATTERN = r"(\[[0-9a-fA-F:]+\]|[^\s,:/\[\]]+):[1-9][0-9]{0,4}"
HostPort = Annotated[str, Meta(pattern=rf"^{PATTERN}$(?!\n)", description="host:port")]
"""The type of a field that holds an address."""


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
