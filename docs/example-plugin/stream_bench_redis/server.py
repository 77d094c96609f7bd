"""An embedded Redis on loopback: in memory only, with bounded memory."""

import contextlib
from pathlib import Path

from redis import RedisError

from bench.plugins.environment import RunEnvironment
from bench.services.embedded_server import EmbeddedServer, start_embedded
from bench.services.ports import LOOPBACK, free_ports
from stream_bench_redis.client import connect

EXECUTABLE = "redis-server"
READY_TIMEOUT_S = 30.0


def start_server(env: RunEnvironment, memory_bytes: int) -> EmbeddedServer[str]:
    """Start a Redis on a free port of loopback; return it, with its address, once it answers.

    Args:
        env: starts the process, and has the folder for its data.
        memory_bytes: beyond this, Redis refuses to store messages.

    Raises:
        ServiceError: it cannot be started, ends, or does not answer in time.
    """
    with start_embedded("Redis", env.data, env.note) as start:
        (port,) = free_ports(1)
        settings = start.folder / "redis.conf"
        settings.write_text(_configuration(port, start.folder, memory_bytes), encoding="utf-8")
        command = [EXECUTABLE, str(settings)]
        child = start.own(env.supervisor.start(command, name="redis", role="source", cwd=start.folder), settings)
        address = f"{LOOPBACK}:{port}"
        child.wait_ready(lambda: _answers(address), READY_TIMEOUT_S)
    return EmbeddedServer(child, start.folder, address)


def _configuration(port: int, folder: Path, memory_bytes: int) -> str:
    return f"""\
bind {LOOPBACK}
port {port}
protected-mode yes
daemonize no
dir {folder}
save ""
appendonly no
maxmemory {memory_bytes}
maxmemory-policy noeviction
"""


def _answers(address: str) -> bool:
    with contextlib.closing(connect(address, "")) as client:
        try:
            return bool(client.ping())
        except RedisError:
            return False
