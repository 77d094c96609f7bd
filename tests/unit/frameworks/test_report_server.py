"""Workers that an engine starts report over a port; who does not know its secret is refused."""

import logging
import socket
import time
from collections.abc import Callable, Iterator

import msgspec
import pytest

from bench.config.address import Address
from bench.errors import SiteError
from bench.workload.delivery_counts import ProcessingReport, SequenceSums
from frameworks import report_server as module
from frameworks.report_connection import ReportConnection, ReportHello
from frameworks.report_server import ReportServer

REPORT = ProcessingReport(1.0, 1, [SequenceSums(0, 3, 3, 5)])
DEADLINE_S = 20.0


@pytest.fixture
def server() -> Iterator[ReportServer]:
    """Return a server; it is closed afterwards."""
    one = ReportServer()
    yield one
    one.close()


def wait_until(condition: Callable[[], object]) -> None:
    """Return once a condition holds."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.01)


def connect(server: ReportServer, *lines: msgspec.Struct) -> socket.socket:
    """Return a connection that has sent some messages, all at once."""
    connection = socket.create_connection((server.address.host, server.address.port), timeout=DEADLINE_S)
    if lines:
        connection.sendall(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return connection


def closed_by_server(connection: socket.socket) -> bool:
    """Return whether the server closes a connection."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_reports_come_without_a_further_call(server: ReportServer) -> None:
    """A worker that has nothing more to do still sends what waits, merged into one report for each run."""
    connection = ReportConnection(server.address)
    connection.add([REPORT, REPORT])
    received: list[ProcessingReport] = []
    wait_until(lambda: received.extend(server.received()) or sum(one.count for one in received) == 6)
    assert not server.ended()
    connection.close()


def test_closing_sends_the_rest_and_the_end_is_seen(server: ReportServer) -> None:
    """What was reported last is received although the worker is gone."""
    connection = ReportConnection(server.address)
    connection.add([REPORT])
    connection.close()
    received: list[ProcessingReport] = []
    wait_until(lambda: received.extend(server.received()) or server.ended())
    received += server.received()
    assert sum(one.count for one in received) == 3


def test_a_worker_whose_harness_is_gone_is_told(server: ReportServer) -> None:
    """With the next report, so that its job ends, and reports do not fill its memory."""
    connection = ReportConnection(server.address)
    wait_until(server.ready)
    server.close()

    def report_on() -> bool:
        connection.add([REPORT])
        return False

    with pytest.raises(OSError, match="reports are not taken any more"):
        wait_until(report_on)
    connection.close()


def test_who_says_a_wrong_secret_is_refused(server: ReportServer, caplog: pytest.LogCaptureFixture) -> None:
    """Its reports do not count, it is no worker that ended, and one line of the log tells of it."""
    with connect(server, ReportHello("guessed"), REPORT) as stranger:
        assert closed_by_server(stranger)
    wait_until(lambda: caplog.records)
    assert (server.received(), server.ready(), server.ended()) == ([], 0, False)
    assert ["did not say the secret" in one.message for one in caplog.records] == [True]


def test_garbage_is_refused(server: ReportServer, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever it is; one line of the log tells of it, and workers are served as before."""
    with socket.create_connection((server.address.host, server.address.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        wait_until(lambda: server.received() or caplog.records)
    connection = ReportConnection(server.address)
    wait_until(lambda: server.ready() == 1)
    connection.close()
    assert len(caplog.records) == 1


def test_nothing_is_kept_of_who_does_not_say_the_secret(server: ReportServer) -> None:
    """The connection is closed and its messages are not read, also while nobody asks for reports."""
    with connect(server, *[REPORT] * 20) as stranger:
        assert closed_by_server(stranger)
    assert server._inboxes == []


def test_a_silent_connection_is_closed(server: ReportServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hold one of a limited number of places."""
    monkeypatch.setattr(module, "SECRET_TIMEOUT_S", 0.0)
    with connect(server) as stranger:
        assert closed_by_server(stranger)
    wait_until(lambda: not server._unknown)


def test_connections_are_limited(server: ReportServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is too many is closed; those before it go on. When one has ended, another is accepted."""
    monkeypatch.setattr(module, "MAX_CONNECTIONS", 1)
    for count in (1, 2):
        worker = ReportConnection(server.address)
        wait_until(lambda count=count: server.ready() == count and not server._unknown)  # type: ignore[misc]
        with connect(server) as stranger:
            assert closed_by_server(stranger)
        worker.add([REPORT])
        received = list[ProcessingReport]()
        wait_until(lambda received=received: received.extend(server.received()) or received)  # type: ignore[misc]
        worker.close()
        wait_until(lambda count=count: server.ended() == count)  # type: ignore[misc]


def test_a_flood_of_strangers_is_one_line_of_the_log(server: ReportServer, caplog: pytest.LogCaptureFixture) -> None:
    """A worker that reports meanwhile is heard."""
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            with connect(server, ReportHello("guessed")) as stranger:
                assert closed_by_server(stranger)
        connection = ReportConnection(server.address)
        wait_until(lambda: server.ready() == 1)
        connection.close()
    assert len(caplog.messages) == 1


def test_workers_report_over_ipv6(ipv6_address: str) -> None:
    """The server listens at the address, and a worker connects to it."""
    server = ReportServer(*Address.parse(ipv6_address))
    connection = ReportConnection(server.address)
    wait_until(lambda: server.ready() or server.ended())
    assert (server.ready(), server.ended()) == (1, False)
    connection.close()
    server.close()


def test_an_address_that_is_taken_is_told(server: ReportServer) -> None:
    """The error names the section of the site file and the address."""
    with pytest.raises(SiteError, match=rf"site\.engine\.listen: cannot listen at 127\.0\.0\.1:{server.address.port}"):
        ReportServer(server.address.host, server.address.port, key="engine.listen")


def test_workers_that_come_after_all_others_ended_belong_to_a_restart() -> None:
    """Their reports say so; a worker that comes beside another one belongs to the same start."""
    server, received = ReportServer(restarts=True), list[ProcessingReport]()
    for start in range(3):
        connections = [ReportConnection(server.address) for _ in range(2)]
        for connection in connections:
            connection.add([REPORT])
        wait_until(lambda start=start: received.extend(server.received()) or len(received) == 2 * start + 2)  # type: ignore[misc]
        for connection in connections:
            connection.close()
        wait_until(lambda start=start: server.ended() == 2 * start + 2)  # type: ignore[misc]
    server.close()
    assert [one.restart for one in received] == [0, 0, 1, 1, 2, 2]


def test_a_worker_in_place_of_one_that_ended_is_no_restart(server: ReportServer) -> None:
    """Engines that replace one worker after the other process nothing again."""
    received = list[ProcessingReport]()
    for count in (1, 2):
        connection = ReportConnection(server.address)
        connection.add([REPORT])
        connection.close()
        wait_until(lambda count=count: received.extend(server.received()) or server.ended() == count)  # type: ignore[misc]
    received += server.received()
    assert [one.restart for one in received] == [0, 0]


def test_a_report_at_once_is_sent_when_it_is_added(server: ReportServer) -> None:
    """Nothing is unsent, so that nothing is lost with a worker that is killed."""
    connection, received = ReportConnection(server.address, at_once=True), list[ProcessingReport]()
    connection.add([REPORT, REPORT])
    wait_until(lambda: received.extend(server.received()) or received)
    connection.close()
    received += server.received()
    assert [one.count for one in received] == [6]
