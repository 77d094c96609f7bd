"""Listening at an address, and reserved ports."""

import socket

import pytest

from bench.config.address import Address
from bench.services.ports import LOOPBACK, free_ports, listen_at


@pytest.mark.parametrize("host", [LOOPBACK, "localhost"])
def test_addresses_and_names_of_ipv4_are_listened_at(host):
    """A name that has addresses of both versions as well, since many clients try IPv4 only."""
    with listen_at(Address(host, 0)) as listener:
        assert listener.getsockname()[0] == LOOPBACK


def test_a_name_of_ipv6_is_listened_at(ipv6_address, monkeypatch):
    """A host may have a name in place of an IPv6 address that a service cannot read."""
    address, resolve = Address.parse(ipv6_address), socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port, **more: resolve("::1", port, **more))
    with listen_at(address._replace(host="six.example")) as listener:
        assert listener.family == socket.AF_INET6


def test_a_host_that_is_not_known_cannot_be_listened_at():
    """The error is an OSError, as that of a port that is taken."""
    with pytest.raises(socket.gaierror):
        listen_at(Address("missing.invalid", 0))


def test_nobody_else_gets_a_reserved_port():
    """A program that asks for this very port, as a client or as a server that does not share, is refused."""
    (port,) = free_ports(1)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((LOOPBACK, port))


def test_a_server_listens_at_a_reserved_port():
    """It does so a second time after its end, as a broker that is started again."""
    (port,) = free_ports(1)
    for _ in range(2):
        with socket.create_server((LOOPBACK, port)), socket.create_connection((LOOPBACK, port)) as client:
            assert client.getpeername() == (LOOPBACK, port)


def test_nothing_answers_at_a_reserved_port():
    """A probe for readiness is refused until the server listens."""
    (port,) = free_ports(1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, port), timeout=5)


def test_many_ports_are_different():
    """More than stay reserved, too."""
    assert len(set(free_ports(100))) == 100
