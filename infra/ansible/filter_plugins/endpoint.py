"""Ansible filter that joins a host and what follows its colon in URLs, settings and messages."""

from collections.abc import Callable


class FilterModule:
    """The filter of this file, as Ansible loads it."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """Return the filter by its name in templates."""
        return {"endpoint": endpoint}


def endpoint(host: str, port: int | str = "") -> str:
    """Return host:port, with an IPv6 address in brackets; the host alone if there is no port.

    Args:
        host: a name or an address, without brackets.
        port: a port, or the folder of an NFS server.
    """
    name = f"[{host}]" if ":" in host else str(host)
    return name if port == "" else f"{name}:{port}"
