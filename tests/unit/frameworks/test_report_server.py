"""Workers that an engine starts report over a port; who does not know its secret is refused."""

import socket
import time
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from bench.config.address import Address
from bench.errors import SiteError
from bench.workload.delivery_counts import ProcessingReport, SequenceSums
from frameworks.report_connection import ReportConnection
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


def test_who_says_a_wrong_secret_is_refused(server: ReportServer, caplog: pytest.LogCaptureFixture) -> None:
    """Its reports do not count, it is no worker that ended, and one line of the log tells of it."""
    stranger = ReportConnection(replace(server.address, secret="guessed"))
    stranger.add([REPORT])
    wait_until(lambda: server.received() or caplog.records)
    stranger.close()
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
