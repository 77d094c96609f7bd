"""Listening at an address, and free ports of the loopback interface."""

import os
import socket
from collections import deque

from bench.config.address import Address

LOOPBACK = "127.0.0.1"

_MAX_RESERVED = 64
"""Ports that stay reserved, of those that were given last; each takes a file descriptor."""

_reserved: deque[int] = deque()
"""File descriptors of the reserved sockets."""


def listen_at(address: Address, backlog: int | None = None) -> socket.socket:
    """Return a socket that listens at an address; for a name that has addresses of both versions at its IPv4 one.

    Raises:
        OSError: nobody can listen there, or the host is not known.
    """
    family, *_, place = min(socket.getaddrinfo(*address, type=socket.SOCK_STREAM))  # AF_INET is less than AF_INET6
    return socket.create_server(place, family=family, backlog=backlog)


def free_ports(count: int) -> list[int]:
    """Return so many different ports at which nobody listens, and reserve them for servers of this program's children.

    A reserved port is bound, but nobody listens at it: the kernel gives it neither to an outgoing connection nor to a
    program that asks for any port, and a server with SO_REUSEADDR (all that we start have it) can still listen at it.
    Without that, another program took the port of a Pulsar while it was starting. A port stays reserved until 64 more
    were given, or the program ends.
    """
    ports = []
    for _ in range(count):
        reserved = socket.socket()
        reserved.bind((LOOPBACK, 0))
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after bind: no two reservations share a port
        ports.append(int(reserved.getsockname()[1]))
        _reserved.append(reserved.detach())
    while len(_reserved) > max(_MAX_RESERVED, count):
        os.close(_reserved.popleft())
    return ports
