"""A runtime whose PEs are containers of a Docker engine, over its HTTP API on a unix socket."""

import http.client
import json
import socket
from typing import Any
from urllib.parse import quote

from frameworks.harmonicio.engine.errors import RefusedError, UnreachableError
from frameworks.harmonicio.engine.worker.runtime import MAX_PROCESSES, Container, PeSpec

_API = "/v1.41"
_LABEL = "harmonicio.c_name"
_CONTAINER_PORT = 80
"""The port at which a PE listens within its container."""
_TIMEOUT_S = 30.0
_MAX_ANSWER_BYTES = 16 * 2**20
_MIN_SHARES = 2
_STOP_TIMEOUT_S = 30


class _Connection(http.client.HTTPConnection):
    """An HTTP connection over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        """Connect to the unix socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_TIMEOUT_S)
        self.sock.connect(self._path)


class DockerRuntime:
    """Starts containers that carry our label, and touches no others."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._started: dict[str, PeSpec] = {}

    def start(self, spec: PeSpec) -> str:
        """Create and start a container without privileges; return its id of 12 characters."""
        environment = [f"{name}={value}" for name, value in spec.environment.items()]
        environment += [f"HARMONICIO_SETTINGS={json.dumps(spec.settings)}", "HARMONICIO_LISTEN=0.0.0.0"]
        limits: dict[str, Any] = {}
        if spec.cpu_share is not None:
            limits["CpuShares"] = max(_MIN_SHARES, int(1024 * spec.cpu_share))
        if spec.memory_bytes is not None:
            limits["Memory"] = spec.memory_bytes
        host_ip = spec.environment.get("HARMONICIO_LISTEN", "127.0.0.1")
        body = {
            "Image": spec.image,
            "Env": environment,
            "Labels": {_LABEL: spec.c_name},
            "ExposedPorts": {f"{_CONTAINER_PORT}/tcp": {}},
            "HostConfig": {
                "PortBindings": {f"{_CONTAINER_PORT}/tcp": [{"HostIp": host_ip, "HostPort": str(spec.port)}]},
                "CapDrop": ["ALL"],
                "CapAdd": ["NET_BIND_SERVICE"],
                "SecurityOpt": ["no-new-privileges"],
                "PidsLimit": MAX_PROCESSES,
                **limits,
            },
        }
        container_id = str(self._request("POST", "/containers/create", body).get("Id", ""))
        if len(container_id) < 12:
            raise UnreachableError(f"the Docker engine at {self._path} created a container without an id")
        self._request("POST", f"/containers/{container_id}/start")
        self._started[container_id[:12]] = spec
        return container_id[:12]

    def stop(self, short_id: str) -> None:
        """Let a PE drain and end; raises RefusedError when there is none of that id."""
        if not any(container.short_id == short_id for container in self.containers()):
            raise RefusedError(f"there is no PE {short_id} here")
        self._request("POST", f"/containers/{short_id}/stop?t={_STOP_TIMEOUT_S}")

    def containers(self) -> list[Container]:
        """Return the containers with our label."""
        filters = quote(json.dumps({"label": [_LABEL]}))
        decoded = self._request("GET", f"/containers/json?all=1&filters={filters}").get("list", [])
        return [self._container(one) for one in decoded]

    def any_ended(self) -> bool:
        """Return False: only a request to the engine would tell."""
        return False

    def remove_ended(self) -> list[Container]:
        """Remove the containers that have ended, and return them."""
        ended = [container for container in self.containers() if container.status != "running"]
        for container in ended:
            self._request("DELETE", f"/containers/{container.short_id}?v=1")
            self._started.pop(container.short_id, None)
        return ended

    def close(self, timeout_s: float) -> None:
        """Stop the containers that this runtime started; the engine kills them after the timeout."""
        for container in self.containers():
            if container.status == "running" and container.short_id in self._started:
                self._request("POST", f"/containers/{container.short_id}/stop?t={int(timeout_s)}")
        self.remove_ended()

    def _container(self, decoded: dict[str, Any]) -> Container:
        ports = [port.get("PublicPort", 0) for port in decoded.get("Ports", [])]
        running = decoded.get("State") == "running"
        short_id = str(decoded.get("Id", ""))[:12]
        spec = self._started.get(short_id)
        return Container(
            short_id=short_id, image=str(decoded.get("Image", "")), c_name=str(decoded.get("Labels", {}).get(_LABEL,
            "")), port=spec.port if spec is not None else next(iter(ports), 0), status="running" if running else
            f"exited ({decoded.get('Status', '')})", cpu_share=spec.cpu_share if spec is not None else None,
            cpu_seconds=self._cpu_seconds(short_id) if running else 0.0,
        )  # fmt: skip

    def _cpu_seconds(self, short_id: str) -> float:
        stats = self._request("GET", f"/containers/{short_id}/stats?stream=false&one-shot=true")
        used = stats.get("cpu_stats", {}).get("cpu_usage", {}).get("total_usage", 0)
        return float(used) / 1e9

    def _request(self, verb: str, path: str, body: object = None) -> dict[str, Any]:
        """Return the JSON object of the answer, a list under "list".

        Raises:
            RefusedError: the engine refuses; with its message.
            UnreachableError: the engine does not answer.
        """
        connection = _Connection(self._path)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request(verb, _API + path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            data = answer.read(_MAX_ANSWER_BYTES)
        except (OSError, http.client.HTTPException) as error:
            hint = "use --runtime process"
            raise UnreachableError(f"no Docker engine answers at {self._path}: {error}; {hint}") from None
        finally:
            connection.close()
        try:
            decoded = json.loads(data) if data else {}
        except ValueError:
            raise UnreachableError(f"the Docker engine at {self._path} answered {answer.status} without JSON") from None
        if answer.status >= 400:
            message = decoded.get("message", "") if isinstance(decoded, dict) else ""
            raise RefusedError(f"the Docker engine said {answer.status}: {message}")
        return decoded if isinstance(decoded, dict) else {"list": decoded}
