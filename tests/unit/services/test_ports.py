"""Reserved ports."""

import socket

import pytest

from bench.services.ports import LOOPBACK, free_ports


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
