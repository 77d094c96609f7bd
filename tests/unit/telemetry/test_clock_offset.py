"""The metrics of a site's hosts, and the offsets of their clocks, are read from their node exporters."""

import socket
import threading

import pytest
from exporter import SERVED, Exporter
from prometheus_client.samples import Sample

from bench.config.site import HostSite, LoadHosts, Site
from bench.errors import SiteError
from bench.telemetry import node_exporter


def test_the_clock_that_is_off_most_is_reported(
    exporter_address: str, unused_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is that of all hosts of a site; there is none where one host does not answer."""
    monkeypatch.setattr(Exporter, "ahead", 0.25)
    offset = node_exporter.measure_clock_offset(Site(hosts={"b1": HostSite(exporter_address)}))
    assert offset is not None
    assert offset.host == "b1"
    assert abs(offset.offset - 0.25) <= offset.bound < 0.2
    assert offset.max_latency_error == abs(offset.offset) + offset.bound
    hosts = {"b1": HostSite(exporter_address), "b2": HostSite(exporter_address)}
    several = node_exporter.measure_clock_offset(Site(hosts=hosts, load=LoadHosts("127.0.0.1:5557", 1)))
    assert several is not None
    assert several.max_latency_error > 0.45
    silent = {"b1": HostSite(exporter_address), "b2": HostSite(unused_address)}
    assert node_exporter.measure_clock_offset(Site(hosts=silent)) is None
    assert node_exporter.measure_clock_offset(Site()) is None


def test_samples_of_an_exporter_are_parsed() -> None:
    """They have names, labels and values; comments and broken lines are skipped."""
    samples = node_exporter.parse_samples(SERVED.format(time=1.5, stolen=0.0))
    assert Sample("node_time_seconds", {}, 1.5) in samples
    assert Sample("stream_bench_service", {"name": "kafka", "version": "4.1.1"}, 1.0) in samples
    assert len(samples) == 10


def test_a_clock_is_compared(exporter_address: str) -> None:
    """The offset of a host on the same clock is zero, within its uncertainty."""
    answer = node_exporter.query(exporter_address)
    assert answer.offset is not None
    assert abs(answer.offset) <= answer.bound + 0.01


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", b""]
)
def test_a_host_that_answers_something_else_is_one_line(answer: bytes) -> None:
    """It does not matter what listens there: a shell, or an exporter that stops in the middle."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(SiteError, match=r"no metrics from 127\.0\.0\.1"):
            node_exporter.query(f"127.0.0.1:{server.getsockname()[1]}")
        server.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=5)
