"""The port for reports takes records of whoever knows the token, and nothing of anybody else."""

import logging
import socket
import time
from collections.abc import Iterator

import numpy as np
import pytest

from bench.config.address import Address
from bench.errors import ServiceError
from bench.model.message_header import Bytes
from frameworks.command import connections as module
from frameworks.command.connections import Connections

TOKEN = b"0123456789abcdef"
DEADLINE_S = 20.0


@pytest.fixture
def port() -> Iterator[Connections]:
    """A port of loopback."""
    with Connections(Address("127.0.0.1", 0), TOKEN) as opened:
        yield opened


def connect(port: Connections, *pieces: bytes) -> socket.socket:
    """Return a connection that has sent something."""
    connection = socket.create_connection(Address.parse(port.address), timeout=DEADLINE_S)
    for piece in pieces:
        connection.sendall(piece)
    return connection


def receive(port: Connections, records: int) -> list[Bytes]:
    """Return the batches in which so many records have come."""
    batches: list[Bytes] = []
    deadline = time.monotonic() + DEADLINE_S
    while sum(map(len, batches)) < records:
        assert time.monotonic() < deadline, f"{batches} of {records} records came"
        batches += port.receive(0.05)
    return batches


def closed_by(port: Connections, connection: socket.socket) -> bool:
    """Return whether the port closes a connection without taking a record of it."""
    connection.settimeout(0.01)
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        assert list(port.receive(0.01)) == []
        try:
            return connection.recv(1) == b""
        except TimeoutError:
            continue
        except ConnectionResetError:
            return True
    return False


@pytest.mark.parametrize(("first", "size"), [(b"", 64), (b" 64", 64), (b" 80", 80)], ids=["left out", "64", "80"])
def test_records_come_as_they_were_sent(port: Connections, first: bytes, size: int) -> None:
    """In whole ones, however they were cut on the way."""
    sent = bytes(range(size)) * 3
    with connect(port, TOKEN[:5], TOKEN[5:] + first + b"\n" + sent[:10], sent[10:100], sent[100:]):
        found = receive(port, 3)
    assert np.concatenate(found).tobytes() == sent
    assert {batch.shape[1] for batch in found} == {size}
    assert port.programs == 1


def test_several_programs_may_report(port: Connections) -> None:
    """Each connection says the token."""
    with connect(port, TOKEN + b"\n" + b"a" * 64), connect(port, TOKEN + b" 80\n" + b"b" * 80):
        assert sorted(batch.shape[1] for batch in receive(port, 2)) == [64, 80]
    assert port.programs == 2


@pytest.mark.parametrize(
    "garbage",
    [b"\n", b"GET / HTTP/1.1\r\n\r\n", b"0123456789abcdeF\n" + b"x" * 64, TOKEN + b" 81\n", b"x" * 1000, b"\xff\xfe\n"],
    ids=["nothing", "a browser", "another token", "another size", "no line", "no text"],
)
def test_garbage_is_disconnected(port: Connections, caplog: pytest.LogCaptureFixture, garbage: bytes) -> None:
    """Nothing of it counts, and one line of the log says why."""
    with caplog.at_level(logging.WARNING), connect(port, garbage) as connection:
        assert closed_by(port, connection)
    assert port.programs == 0
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("a connection was refused: ")


def test_a_flood_of_garbage_is_one_line_of_the_log(port: Connections, caplog: pytest.LogCaptureFixture) -> None:
    """A program that reports meanwhile is heard."""
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            with connect(port, b"garbage\n") as connection:
                assert closed_by(port, connection)
        with connect(port, TOKEN + b"\n" + b"a" * 64):
            assert len(receive(port, 1)) == 1
    assert len(caplog.messages) == 1


def test_the_next_line_of_the_log_counts_those_between(
    port: Connections, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is hidden by the limit."""
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            with connect(port, b"garbage\n") as connection:
                assert closed_by(port, connection)
        monkeypatch.setattr(port._refusals, "_next", 0.0)
        with connect(port, b"garbage\n") as connection:
            assert closed_by(port, connection)
    assert caplog.messages[1].endswith("(2 others before it)")


def test_a_silent_connection_is_closed(port: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hold one of a limited number of places."""
    with connect(port) as connection:
        while len(port._selector.get_map()) < 2:
            list(port.receive(0.05))
        monkeypatch.setattr(module, "TOKEN_TIMEOUT_S", 0.0)
        assert closed_by(port, connection)


def test_connections_are_limited(port: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is too many is closed; those before it go on."""
    monkeypatch.setattr(module, "MAX_CONNECTIONS", 1)
    with connect(port, TOKEN + b"\n") as first:
        while port.programs == 0:
            list(port.receive(0.05))
        with connect(port, TOKEN + b"\n") as second:
            assert closed_by(port, second)
        first.sendall(b"a" * 64)
        assert len(receive(port, 1)) == 1


def test_a_connection_that_ends_makes_no_noise(port: Connections, caplog: pytest.LogCaptureFixture) -> None:
    """A program may close it whenever it wants; half a record does not count."""
    with caplog.at_level(logging.WARNING):
        with connect(port, TOKEN + b"\n" + b"a" * 100):
            assert len(receive(port, 1)) == 1
        while len(port._selector.get_map()) > 1:
            assert list(port.receive(0.05)) == []
    assert caplog.messages == []


def test_programs_connect_over_ipv6(ipv6_address: str) -> None:
    """The address that they get is the one at which the port listens."""
    with Connections(Address.parse(ipv6_address), TOKEN) as port, connect(port, TOKEN + b"\n" + b"a" * 64):
        assert port.address == ipv6_address
        assert len(receive(port, 1)) == 1


def test_an_address_of_somebody_else_is_an_error(port: Connections) -> None:
    """The line names the setting and the address."""
    with pytest.raises(ServiceError, match=rf"settings\.command\.listen: cannot listen at {port.address}"):
        Connections(Address.parse(port.address), TOKEN)
