"""A site is looked at: its endpoints, and what its hosts say of their clocks, services and limits."""

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bench.cli import diagnosis
from bench.config.scenario import Grid, Scenario
from bench.config.site import HostSite, LoadHosts, Site
from bench.errors import PluginError, SiteError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.runner import deployment
from bench.services import credentials, preflight
from bench.storage.run_folder import RunRecord
from bench.telemetry import node_exporter
from bench.units import Seconds, Size
from frameworks.harmonicio.site import HarmonicioSite
from frameworks.spark.site import SparkSite
from producers.files.site import FilesSite
from producers.kafka.site import KafkaSecurity, KafkaSite
from producers.pulsar.admin import Admin
from producers.pulsar.site import PulsarSite
from producers.tcp.site import TcpSite
from reports.data.derived import cpu_bound
from reports.data.run_data import RunData

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
    found = diagnosis.findings(site, tmp_path, tmp_path / "cache", tmp_path / "registry")
    return {one.what: one.good for one in found if one.what.startswith(("b1:", "kafka at", "spark at"))}


def test_the_clock_that_is_off_most_is_told(address: str, nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all hosts of a site; nothing where one does not say."""
    monkeypatch.setattr(Exporter, "ahead", 0.25)
    apart = node_exporter.measure_clock_offset(Site(hosts={"b1": HostSite(address)}))
    assert apart is not None
    assert apart.host == "b1"
    assert abs(apart.offset - 0.25) <= apart.bound < 0.2
    assert apart.max_latency_error == abs(apart.offset) + apart.bound
    sent = Site(hosts={"b1": HostSite(address), "b2": HostSite(address)}, load=LoadHosts("127.0.0.1:5557", 1))
    assert node_exporter.measure_clock_offset(sent).most > 0.45
    assert node_exporter.measure_clock_offset(Site(hosts={"b1": HostSite(address), "b2": HostSite(nobody)})) is None
    assert node_exporter.measure_clock_offset(Site()) is None


def test_figures_are_read() -> None:
    """Names, labels and numbers; comments and what is broken are passed over."""
    figures = node_exporter.figures_in(SERVED.format(time=1.5))
    assert node_exporter.Figure("node_time_seconds", {}, 1.5) in figures
    assert node_exporter.Figure("stream_bench_service", {"name": "kafka", "version": "4.1.1"}, 1.0) in figures
    assert len(figures) == 8


def test_a_clock_is_compared(address: str) -> None:
    """The offset of a host on the same clock is nothing, within what is known of it."""
    told = node_exporter.query(address)
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


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", b""]
)
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
            node_exporter.query(f"127.0.0.1:{server.getsockname()[1]}")
        server.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=5)


def test_an_endpoint_is_reached(address: str, tmp_path: Path) -> None:
    """Whoever takes connections is said to."""
    assert said(Site(sections={"kafka": KafkaSite(address)}), tmp_path) == {
        f"kafka at {address} takes connections": True
    }


def test_an_endpoint_where_nobody_listens_is_a_refusal(nobody: str) -> None:
    """Its host is there: what listened has died."""
    (gap,) = preflight.gaps(Site(sections={"spark": SparkSite(f"spark://{nobody}")}))
    assert gap.refused
    assert str(gap) == f"spark at {nobody}: no connection (Connection refused)"


def test_a_run_needs_its_endpoints(nobody: str) -> None:
    """Without one of them nothing is begun."""
    with pytest.raises(SiteError, match=f"kafka at {nobody}: no connection"):
        preflight.require(Site(sections={"kafka": KafkaSite(nobody)}))


def test_what_stands_elsewhere_is_known() -> None:
    """Only what the site names does; a room may be called as a key of the site file is that is no service."""
    site = Site(load=LoadHosts("h:1", 1), sections={"kafka": KafkaSite("b1:9092"), "harmonicio": HARMONICIO})
    assert site.elsewhere("stream")
    assert not site.elsewhere("load")
    assert site.elsewhere("kafka")
    assert not site.elsewhere("spark")
    assert not site.elsewhere("python")


def test_a_secured_kafka_lets_clients_in_by_their_own_names(tmp_path: Path) -> None:
    """Java, librdkafka and kafka-python are told the same."""
    (tmp_path / "password").write_text('a "quoted" one\n')
    (tmp_path / "ca.crt").write_text("CERTIFICATE\n")
    told = credentials.of_clients(KafkaSecurity("bench", str(tmp_path / "password"), str(tmp_path / "ca.crt")))
    assert 'password="a \\"quoted\\" one";' in str(told["sasl.jaas.config"])
    assert told["ssl.truststore.certificates"] == "CERTIFICATE\n"
    assert credentials.for_librdkafka(told)["sasl.password"] == 'a "quoted" one'
    assert credentials.for_kafka_python(told)["sasl_plain_password"] == 'a "quoted" one'
    assert credentials.of_clients(None) == credentials.for_librdkafka({"acks": 1}) == {}


def test_a_password_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """The line names the file."""
    with pytest.raises(SiteError, match=r"cannot be read"):
        credentials.of_clients(KafkaSecurity("bench", str(tmp_path / "password"), str(tmp_path / "ca.crt")))


SPARK = SparkSite("spark://f1:7077", cores=12)
HARMONICIO = HarmonicioSite("f1:8090", "f1:8091", "127.0.0.1:7215")


def why_not(system: str, site: Site) -> str | None:
    """What the rig says to a cell of a system."""
    scenario = Scenario("x", (system,), Grid((Size(1000),)))
    return deployment.unsupported_reason(scenario.cells()[0], scenario, site)


@pytest.mark.parametrize(
    ("system", "site", "part"),
    [
        ("spark/kafka", Site(sections={"spark": SPARK}), "kafka"),
        ("spark/pulsar", Site(sections={"spark": SPARK, "kafka": KafkaSite("b1:9092")}), "pulsar"),
        ("spark/files", Site(sections={"spark": SPARK}), "files"),
        ("spark/tcp", Site(sections={"spark": SPARK, "files": FilesSite("/srv/stream")}), "tcp"),
        ("harmonicio/kafka", Site(sections={"harmonicio": HARMONICIO}), "kafka"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_source_that_a_framework_of_the_site_would_not_see_is_refused(system: str, site: Site, part: str) -> None:
    """In one line that names the part of the site file that is missing."""
    framework, _, source = system.partition("/")
    said = (
        f"{framework} stands on the site, {source} on this machine, where it is not seen: the site file has no `{part}`"
    )
    assert why_not(system, site) == said


@pytest.mark.parametrize(
    ("system", "site"),
    [
        ("spark/kafka", Site()),
        ("python/tcp", Site(sections={"spark": SPARK})),
        ("harmonicio/stream", Site(sections={"spark": SPARK})),
        ("harmonicio/stream", Site(sections={"harmonicio": HARMONICIO})),
        ("spark/files", Site(sections={"spark": SPARK, "files": FilesSite("/srv/stream")})),
        ("spark/tcp", Site(sections={"spark": SPARK, "tcp": TcpSite("127.0.0.1:7200")})),
        ("spark/kafka", Site(sections={"spark": SPARK, "kafka": KafkaSite("b1:9092")})),
    ],
    ids=[
        "all here",
        "plain is here",
        "harmonicio is here",
        "its own source",
        "shared folder",
        "a port",
        "the site's broker",
    ],
)
def test_a_source_that_is_seen_is_not_refused(system: str, site: Site) -> None:
    """Whether both are here, or the site file says where the source is seen."""
    assert why_not(system, site) is None


def test_cores_are_of_where_a_framework_stands() -> None:
    """Its own of the site, the site's for all, or those of this machine."""
    site = Site(cores=16, sections={"spark": SPARK, "harmonicio": HARMONICIO})
    assert [site.cores_of(name, 2) for name in ("spark", "harmonicio", "python")] == [12, 16, 2]
    assert Site(cores=16, sections={"kafka": KafkaSite("b1:9092")}).cores_of("spark", 2) == 2
    dear = Scenario("x", ("spark/kafka", "python/kafka"), Grid((Size(1000),), (Seconds(0.01),)))
    assert [deployment.roofs(cell, dear, site, 2)[0].hz for cell in dear.cells()] == [1200.0, 200.0]


def test_a_reports_bound_is_that_of_the_framework() -> None:
    """Spark's twelve cores of the site are not those of plain processes on this machine."""
    scenario = Scenario("x", ("spark/kafka", "python/kafka"), Grid((Size(1000),)))
    run = RunRecord(1, scenario, Site(sections={"spark": SPARK}), {"cores": 2}, "2026-05-04T10:00:00Z")
    run_data = RunData(Path(), run, ())
    assert [cpu_bound(run_data, name, 0.01) for name in ("spark", "python")] == [1200.0, 200.0]


def test_tcp_listens_where_the_site_says(env: RunEnvironment, nobody: str) -> None:
    """And on loopback where it says nothing."""
    cell, on_site = Cell("spark", "tcp", 1000, 0.0), Site(sections={"tcp": TcpSite(nobody)})
    assert (
        registry.source("tcp", {}).open(cell, cast("RunEnvironment", SimpleNamespace(site=on_site))).address == nobody
    )
    assert registry.source("tcp", {}).open(cell, env).address.startswith("127.0.0.1:")


def test_files_lie_in_the_sites_folder(env: RunEnvironment, tmp_path: Path) -> None:
    """A new folder in it for each cell, gone when the cell is over; a folder that nobody has mounted is not made."""
    cell, source = Cell("spark", "files", 1000, 0.0), registry.source("files", {"files": {"folder": "/dev/shm"}})
    shared = SimpleNamespace(site=Site(sections={"files": FilesSite(str(tmp_path))}), data=env.data)
    endpoint = source.open(cell, cast("RunEnvironment", shared))
    assert Path(endpoint.address).parent.parent == tmp_path
    source.close()
    assert not list(tmp_path.iterdir())
    shared.site = Site(sections={"files": FilesSite(str(tmp_path / "unmounted"))})
    with pytest.raises(PluginError, match="unmounted: No such file"):
        registry.source("files", {}).open(cell, cast("RunEnvironment", shared))


def test_what_this_machine_should_serve_is_looked_at(tmp_path: Path) -> None:
    """An address that is not its own, and a folder that is not there."""
    site = Site(sections={"tcp": TcpSite("192.0.2.1:7200"), "files": FilesSite(str(tmp_path / "unmounted"))})
    listening, folder = preflight.unserved(site)
    assert listening.startswith("site.tcp.listen: cannot listen at 192.0.2.1:7200")
    assert folder == f"site.files.folder: {tmp_path / 'unmounted'} is no folder that can be written; is it mounted?"
    assert preflight.unserved(Site()) == []


@pytest.mark.parametrize(
    ("site", "key"),
    [
        (Site(sections={"kafka": KafkaSite("b1:9092", KafkaSecurity("bench", "/nowhere/it", "/dev/null"))}), "kafka.security.password_file"),
        (Site(sections={"pulsar": PulsarSite("pulsar://b1:6650", "http://b1:8080", ca_file="/nowhere/it")}), "pulsar.ca_file"),
        (Site(sections={"spark": SparkSite("yarn", password_file="/nowhere/it")}), "spark.password_file"),
        (Site(sections={"harmonicio": HarmonicioSite("a:1", "a:2", "a:3", connector_token_file="/nowhere/it")}),
         "harmonicio.connector_token_file"),
    ],
    ids=["kafka", "pulsar", "spark", "harmonicio"],
)  # fmt: skip
def test_a_file_that_cannot_be_read_ends_a_run_before_it_begins(site: Site, key: str) -> None:
    """The line names the key and the path, not an endpoint that did not answer."""
    with pytest.raises(SiteError, match=rf"site\.{key}: /nowhere/it cannot be read"):
        preflight.require(site)


def test_the_first_line_of_a_token_file_is_the_token(tmp_path: Path) -> None:
    """What else it holds is nobody's."""
    (tmp_path / "token").write_text(" the token \nand a note\n")
    site = PulsarSite("pulsar://b1:6650", "http://b1:8080", token_file=str(tmp_path / "token"))
    assert Admin(site)._headers()["Authorization"] == "Bearer the token"


def test_a_token_in_the_open_is_told(nobody: str, tmp_path: Path) -> None:
    """Of each connection that is not encrypted."""
    (tmp_path / "token").write_text("a token")
    told = PulsarSite(f"pulsar+ssl://{nobody}", f"http://{nobody}", token_file=str(tmp_path / "token"))
    found = diagnosis.findings(Site(sections={"pulsar": told}), tmp_path, tmp_path / "cache", tmp_path / "registry")
    assert [one.what for one in found if "unencrypted" in one.what] == [
        f"pulsar at http://{nobody}: its token goes over an unencrypted connection, where others can read it"
    ]
