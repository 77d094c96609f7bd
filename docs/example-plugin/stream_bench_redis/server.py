"""An embedded Redis on loopback: in memory only, with bounded memory."""

import contextlib
import shutil
import tempfile
from pathlib import Path

from redis import RedisError

from bench.plugins.protocols import RunEnvironment
from bench.services.ports import LOOPBACK, free_ports
from bench.system.supervisor import Child
from stream_bench_redis.client import connect

EXECUTABLE = "redis-server"
READY_TIMEOUT_S = 30.0


class RedisServer:
    """An embedded Redis that answers its clients at `address`."""

    def __init__(self, child: Child, folder: Path, address: str) -> None:
        self.address = address
        self._child, self._folder = child, folder

    def alive(self) -> bool:
        """Return whether its process runs."""
        return self._child.alive()

    def close(self) -> None:
        """Stop it and delete its folder; idempotent."""
        self._child.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def start_server(env: RunEnvironment, memory_bytes: int) -> RedisServer:
    """Start a Redis on a free port of loopback; return it once it answers.

    Args:
        env: starts the process, and has the folder for its data.
        memory_bytes: beyond this, Redis refuses to store messages.

    Raises:
        ServiceError: it cannot be started, ends, or does not answer in time.
    """
    env.note("Redis: starting")
    with contextlib.ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix="redis-", dir=env.data))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        (port,) = free_ports(1)
        configuration = folder / "redis.conf"
        configuration.write_text(_configuration(port, folder, memory_bytes), encoding="utf-8")
        child = env.supervisor.start([EXECUTABLE, str(configuration)], name="redis", role="source", cwd=folder)
        undo.callback(child.kill)
        shutil.copy(configuration, child.log.with_suffix(".conf"))  # outlives the folder, beside the log
        address = f"{LOOPBACK}:{port}"
        child.wait_ready(lambda: _answers(address), READY_TIMEOUT_S)
        undo.pop_all()
    env.note(f"Redis: ready at {address}")
    return RedisServer(child, folder, address)


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
