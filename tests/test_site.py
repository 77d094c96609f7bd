"""A site is looked at: its endpoints, and what its hosts say of their clocks, services and limits."""

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bench import doctor, exporter
from bench.errors import SiteError
from bench.services import admission, needs
from bench.site import HostSite, KafkaSite, LoadSite, Security, Site, SparkSite

AHEAD = 5.0
"""Seconds by which the clock of the exporter below is ahead of ours when it is asked to be."""
SERVED = """\
# HELP node_time_seconds System time in seconds since epoch (1970).
# TYPE node_time_seconds gauge
node_time_seconds {time!r}
node_cpu_seconds_total{{cpu="0",mode="idle"}} 4.5e+06
node_cpu_seconds_total{{cpu="1",mode="idle"}} 4.5e+06
node_memory_MemAvailable_bytes 8e+09
stream_bench_service{{name="kafka",version="4.1.1"}} 1
stream_bench_service{{name="spark-worker",version="4.2.0"}} 0
stream_bench_files{{name="kafka"}} 1024
stream_bench_clock_followed 1
this line is not one of them
"""


class Exporter(BaseHTTPRequestHandler):
    """Serves figures as a node exporter does; the path's host names how far its clock is ahead."""

    ahead = 0.0

    def do_GET(self) -> None:
        body = SERVED.format(time=time.time() + type(self).ahead).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:  # type: ignore[override]  # nobody reads it
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    """Where an exporter serves."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Exporter) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def nobody() -> str:
    """An address of loopback at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def said(site: Site, tmp_path: Path) -> dict[str, bool]:
    """What the doctor says of a site's hosts and endpoints: whether each is as it should be."""
    found = doctor.findings(site, tmp_path, tmp_path / "cache", tmp_path / "registry")
    return {one.what: one.good for one in found if one.what.startswith(("b1:", "kafka at", "spark at"))}


def test_the_clock_that_is_off_most_is_told(address: str, nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all hosts of a site; nothing where one does not say."""
    monkeypatch.setattr(Exporter, "ahead", 0.25)
    apart = exporter.apart(Site(hosts={"b1": HostSite(address)}))
    assert apart is not None
    assert apart.host == "b1"
    assert abs(apart.offset - 0.25) <= apart.bound < 0.2
    assert apart.most == abs(apart.offset) + apart.bound
    sent = Site(hosts={"b1": HostSite(address), "b2": HostSite(address)}, load=LoadSite("127.0.0.1:5557", 1))
    assert exporter.apart(sent).most > 0.45
    assert exporter.apart(Site(hosts={"b1": HostSite(address), "b2": HostSite(nobody)})) is None
    assert exporter.apart(Site()) is None


def test_figures_are_read() -> None:
    """Names, labels and numbers; comments and what is broken are passed over."""
    figures = exporter.figures_in(SERVED.format(time=1.5))
    assert exporter.Figure("node_time_seconds", {}, 1.5) in figures
    assert exporter.Figure("stream_bench_service", {"name": "kafka", "version": "4.1.1"}, 1.0) in figures
    assert len(figures) == 8


def test_a_clock_is_compared(address: str) -> None:
    """The offset of a host on the same clock is nothing, within what is known of it."""
    told = exporter.ask(address)
    assert told.offset is not None
    assert abs(told.offset) <= told.bound + 0.01


def test_a_clock_that_is_off_is_seen(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five seconds ahead is told as such, and is wrong."""
    monkeypatch.setattr(Exporter, "ahead", AHEAD)
    found = said(Site(hosts={"b1": HostSite(address)}), tmp_path)
    (clock,) = [(what, good) for what, good in found.items() if "its clock is" in what]
    assert clock[0].startswith("b1: its clock is 5000.")
    assert not clock[1]


def test_services_versions_and_limits_are_compared(address: str, tmp_path: Path) -> None:
    """What runs in its version is right; another version, what stands still, what is not there and few files are wrong."""
    services = {"kafka": "4.1.1", "spark-worker": "4.2.0", "pulsar": "4.2.4"}
    found = said(Site(hosts={"b1": HostSite(address, services)}), tmp_path)
    assert found["b1: kafka 4.1.1 runs"]
    assert not found["b1: kafka may have 1024 files and connections at once"]
    assert not found["b1: spark-worker does not run; run the playbook restart.yml"]
    assert not found["b1: pulsar is not set up there; run the playbook site.yml"]
    older = said(Site(hosts={"b1": HostSite(address, {"kafka": "4.1.0"})}), tmp_path)
    assert not older["b1: kafka is 4.1.1, the site file says 4.1.0"]


def test_a_host_that_says_nothing_is_wrong(nobody: str, tmp_path: Path) -> None:
    """The line names it and its address."""
    assert list(said(Site(hosts={"b1": HostSite(nobody)}), tmp_path).values()) == [False]


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", b""])
def test_a_host_that_says_something_else_is_one_line(answer: bytes) -> None:
    """Whatever listens there: a shell, or an exporter that stops in the middle."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    asked, _ = server.accept()
                except OSError:
                    return
                with asked:
                    asked.recv(4096)
                    asked.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(SiteError, match=r"no figures from 127\.0\.0\.1"):
            exporter.ask(f"127.0.0.1:{server.getsockname()[1]}")
        server.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=5)


def test_an_endpoint_is_reached(address: str, tmp_path: Path) -> None:
    """Whoever takes connections is said to."""
    assert said(Site(kafka=KafkaSite(address)), tmp_path) == {f"kafka at {address} takes connections": True}


def test_an_endpoint_where_nobody_listens_is_a_refusal(nobody: str) -> None:
    """Its host is there: what listened has died."""
    (gap,) = needs.gaps(Site(spark=SparkSite(f"spark://{nobody}")))
    assert gap.refused
    assert str(gap) == f"spark at {nobody}: no connection (Connection refused)"


def test_a_run_needs_its_endpoints(nobody: str) -> None:
    """Without one of them nothing is begun."""
    with pytest.raises(SiteError, match=f"kafka at {nobody}: no connection"):
        needs.require(Site(kafka=KafkaSite(nobody)))


def test_what_stands_elsewhere_is_known() -> None:
    """Only what the site names does."""
    site = Site(kafka=KafkaSite("b1:9092"))
    assert site.elsewhere("kafka")
    assert not site.elsewhere("spark")
    assert not site.elsewhere("plain")


def test_a_secured_kafka_lets_clients_in_by_their_own_names(tmp_path: Path) -> None:
    """Java, librdkafka and kafka-python are told the same."""
    (tmp_path / "password").write_text('a "quoted" one\n')
    (tmp_path / "ca.crt").write_text("CERTIFICATE\n")
    told = admission.of_clients(Security("bench", str(tmp_path / "password"), str(tmp_path / "ca.crt")))
    assert 'password="a \\"quoted\\" one";' in str(told["sasl.jaas.config"])
    assert told["ssl.truststore.certificates"] == "CERTIFICATE\n"
    assert admission.for_librdkafka(told)["sasl.password"] == 'a "quoted" one'
    assert admission.for_kafka_python(told)["sasl_plain_password"] == 'a "quoted" one'
    assert admission.of_clients(None) == admission.for_librdkafka({"acks": 1}) == {}


def test_a_password_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """The line names the file."""
    with pytest.raises(SiteError, match=r"cannot be read"):
        admission.of_clients(Security("bench", str(tmp_path / "password"), str(tmp_path / "ca.crt")))
