"""The Docker runtime sends the right requests to a small engine of ours; a real one is used where it answers."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingUnixStreamServer

import pytest

from frameworks.harmonicio.engine.errors import RefusedError, UnreachableError
from frameworks.harmonicio.engine.worker.docker import DockerRuntime
from frameworks.harmonicio.engine.worker.runtime import PeSpec

ID = "0123456789abcdef" * 4


class DockerRoutes(BaseHTTPRequestHandler):
    """The routes of an engine that creates, starts, stops and removes one container."""

    def log_message(self, *_):
        pass

    def address_string(self):
        return "unix"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.path, json.loads(body) if body else None))
        if self.path.endswith("/containers/create"):
            if json.loads(body)["Image"] == "missing":
                return self._answer(404, {"message": "No such image: missing"})
            self.server.state = "created"
            return self._answer(201, {"Id": ID})
        self.server.state = "running" if self.path.endswith("/start") else "exited"
        return self._answer(204, None)

    def do_GET(self):
        if "/stats" in self.path:
            return self._answer(200, {"cpu_stats": {"cpu_usage": {"total_usage": 2_500_000_000}}})
        one = {"Id": ID, "Image": "img:1", "State": self.server.state, "Status": "Exited (0)", "Ports": [],
               "Labels": {"harmonicio.c_name": "s"}}  # fmt: skip
        return self._answer(200, [one] if self.server.state else [])

    def do_DELETE(self):
        self.server.state = None
        return self._answer(204, None)

    def _answer(self, status, body):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def engine(tmp_path):
    """An engine that listens on a unix socket."""
    server = ThreadingUnixStreamServer(str(tmp_path / "docker.sock"), DockerRoutes)
    server.asked, server.state = [], None
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_pe_is_a_container_with_limits_and_without_privileges(engine):
    """It is started, listed with its CPU time, stopped and removed."""
    runtime = DockerRuntime(engine.server_address)
    environment = {"HDE_NODE_NAME": "s", "HDE_NODE_DATA_PORT": "80"}
    start = PeSpec(c_name="s", image="img:1", port=9001, environment=environment, cpu_share=0.125, memory_bytes=10**9)
    assert runtime.start(start) == ID[:12]
    created = engine.asked[0][1]
    assert created["HostConfig"]["CpuShares"] == 128
    assert created["HostConfig"]["Memory"] == 10**9
    assert created["HostConfig"]["PortBindings"] == {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "9001"}]}
    assert created["HostConfig"]["CapDrop"] == ["ALL"]
    assert created["HostConfig"]["SecurityOpt"] == ["no-new-privileges"]
    assert created["HostConfig"]["PidsLimit"] == 4096
    assert "HDE_NODE_DATA_PORT=80" in created["Env"]
    (container,) = runtime.containers()
    assert (container.status, container.port, container.cpu_seconds) == ("running", 9001, 2.5)
    runtime.stop(ID[:12])
    assert [one.short_id for one in runtime.remove_ended()] == [ID[:12]]
    assert runtime.containers() == []


def test_a_refusal_of_the_engine_is_raised(engine):
    """The error has the engine's message."""
    with pytest.raises(RefusedError, match="No such image"):
        DockerRuntime(engine.server_address).start(PeSpec(c_name="s", image="missing", port=9001, environment={}))
    with pytest.raises(RefusedError, match="there is no PE"):
        DockerRuntime(engine.server_address).stop("nobody")


def test_without_an_engine_the_other_runtime_is_named(tmp_path):
    """The error suggests the process runtime."""
    with pytest.raises(UnreachableError, match="--runtime process"):
        DockerRuntime(str(tmp_path / "nothing")).containers()


def test_a_real_engine_lists_its_containers():
    """The test is skipped where no engine answers."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect("/var/run/docker.sock")
    except OSError as problem:
        pytest.skip(f"no Docker engine answers here: {problem}")
    assert isinstance(DockerRuntime("/var/run/docker.sock").containers(), list)
