"""PEs as containers of a Docker engine, over its HTTP interface on a unix socket; used when an engine answers there."""

import http.client
import json
import socket
from typing import Any
from urllib.parse import quote

from frameworks.harmonicio.engine.errors import Refused, Unreachable
from frameworks.harmonicio.engine.worker.runtime import Container, Start

_API = "/v1.41"
_LABEL = "harmonicio.c_name"
_INSIDE = 80
"""The port that a PE listens at within its container."""
_TIMEOUT_S = 30.0
_MAX_ANSWER = 16 * 2**20
_MIN_SHARES = 2
_STOP_SECONDS = 30


class _Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_TIMEOUT_S)
        self.sock.connect(self._path)


class DockerRuntime:
    """Starts containers that carry our label, and touches no others."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: dict[str, Start] = {}

    def start(self, start: Start) -> str:
        environment = [f"{name}={value}" for name, value in start.environment.items()]
        environment += [f"HARMONICIO_SETTINGS={json.dumps(start.settings)}", "HARMONICIO_LISTEN=0.0.0.0"]
        limits: dict[str, Any] = {}
        if start.cpu_share is not None:
            limits["CpuShares"] = max(_MIN_SHARES, int(1024 * start.cpu_share))
        if start.memory_bytes is not None:
            limits["Memory"] = start.memory_bytes
        host_ip = start.environment.get("HARMONICIO_LISTEN", "127.0.0.1")
        body = {
            "Image": start.image,
            "Env": environment,
            "Labels": {_LABEL: start.c_name},
            "ExposedPorts": {f"{_INSIDE}/tcp": {}},
            "HostConfig": {
                "PortBindings": {f"{_INSIDE}/tcp": [{"HostIp": host_ip, "HostPort": str(start.port)}]},
                "CapDrop": ["ALL"],
                "CapAdd": ["NET_BIND_SERVICE"],
                "SecurityOpt": ["no-new-privileges"],
                **limits,
            },
        }
        container_id = str(self._ask("POST", "/containers/create", body).get("Id", ""))
        if len(container_id) < 12:
            raise Unreachable(f"the Docker engine at {self._path} created a container without an id")
        self._ask("POST", f"/containers/{container_id}/start")
        self._known[container_id[:12]] = start
        return container_id[:12]

    def stop(self, short_id: str) -> None:
        if not any(container.short_id == short_id for container in self.containers()):
            raise Refused(f"there is no PE {short_id} here")
        self._ask("POST", f"/containers/{short_id}/stop?t={_STOP_SECONDS}")

    def containers(self) -> list[Container]:
        filters = quote(json.dumps({"label": [_LABEL]}))
        found = self._ask("GET", f"/containers/json?all=1&filters={filters}").get("list", [])
        return [self._container(one) for one in found]

    def any_ended(self) -> bool:
        return False

    def remove_ended(self) -> list[Container]:
        ended = [container for container in self.containers() if container.status != "running"]
        for container in ended:
            self._ask("DELETE", f"/containers/{container.short_id}?v=1")
            self._known.pop(container.short_id, None)
        return ended

    def close(self, patience: float) -> None:
        for container in self.containers():
            if container.status == "running" and container.short_id in self._known:
                self._ask("POST", f"/containers/{container.short_id}/stop?t={int(patience)}")
        self.remove_ended()

    def _container(self, found: dict[str, Any]) -> Container:
        ports = [port.get("PublicPort", 0) for port in found.get("Ports", [])]
        running = found.get("State") == "running"
        short_id = str(found.get("Id", ""))[:12]
        known = self._known.get(short_id)
        return Container(
            short_id=short_id, image=str(found.get("Image", "")), c_name=str(found.get("Labels", {}).get(_LABEL, "")),
            port=known.port if known is not None else next(iter(ports), 0),
            status="running" if running else f"exited ({found.get('Status', '')})",
            cpu_share=known.cpu_share if known is not None else None, cpu_seconds=self._cpu_seconds(short_id) if running else 0.0,
        )  # fmt: skip

    def _cpu_seconds(self, short_id: str) -> float:
        stats = self._ask("GET", f"/containers/{short_id}/stats?stream=false&one-shot=true")
        used = stats.get("cpu_stats", {}).get("cpu_usage", {}).get("total_usage", 0)
        return float(used) / 1e9

    def _ask(self, verb: str, path: str, body: object = None) -> dict[str, Any]:
        """The answer's object (a list under "list"); raises Refused with what the engine said, Unreachable when it says nothing."""
        connection = _Connection(self._path)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request(verb, _API + path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            data = answer.read(_MAX_ANSWER)
        except (OSError, http.client.HTTPException) as problem:
            raise Unreachable(f"no Docker engine answers at {self._path}: {problem}; use --runtime process") from None
        finally:
            connection.close()
        try:
            found = json.loads(data) if data else {}
        except ValueError:
            raise Unreachable(f"the Docker engine at {self._path} answered {answer.status} without JSON") from None
        if answer.status >= 400 and not (answer.status == 304):
            raise Refused(
                f"the Docker engine said {answer.status}: {found.get('message', '') if isinstance(found, dict) else ''}"
            )
        return found if isinstance(found, dict) else {"list": found}
