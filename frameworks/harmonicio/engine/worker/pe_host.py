"""The PEs of a worker: started within its limits, stopped, and described for reports."""

import asyncio
import os
import time
from fnmatch import fnmatchcase
from typing import Any

import psutil

from frameworks.harmonicio.engine.config import WorkerConfig
from frameworks.harmonicio.engine.errors import RefusedError
from frameworks.harmonicio.engine.http import load_averages
from frameworks.harmonicio.engine.worker.cpu_shares import CpuShares
from frameworks.harmonicio.engine.worker.environment import CreateRequest, pe_environment
from frameworks.harmonicio.engine.worker.ports import PortRange
from frameworks.harmonicio.engine.worker.runtime import Container, PeSpec, Runtime


class PeHost:
    """The PEs of one worker.

    Args:
        config: of the worker.
        name: of the worker.
        port: of its control plane.
        runtime: where PEs run.
    """

    def __init__(self, config: WorkerConfig, name: str, port: int, runtime: Runtime) -> None:
        self._config, self._name, self._port, self._runtime = config, name, port, runtime
        self._ports = PortRange(*config.data_ports, config.host)
        self._lock = asyncio.Lock()
        self._cores = os.cpu_count() or 1
        self._shares = CpuShares(self._cores, 4 * config.most_pes)
        psutil.cpu_percent()  # the next call returns the share since this one

    async def start(self, request: CreateRequest) -> str:
        """Start one PE and return its id; raises RefusedError or UnreachableError."""
        config, image = self._config, request.image or request.c_name
        if not any(fnmatchcase(image, allowed) for allowed in config.allow):
            allowed_images = ", ".join(config.allow) or "none (--allow)"
            raise RefusedError(f"{image!r} is not among the images that may run here: {allowed_images}")
        if request.cpu_share is not None and not 0 < request.cpu_share <= 1:
            raise RefusedError(f"a CPU share is above 0 and at most 1, not {request.cpu_share:g}")
        async with self._lock:
            if len(await self.running()) >= config.most_pes:
                raise RefusedError(f"{config.most_pes} PEs run here already")
            port = self._ports.take()
            short_id = ""
            try:
                spec = PeSpec(
                    c_name=request.c_name, image=image, port=port,
                    environment=pe_environment(request, config, port, self._port),
                    cpu_share=request.cpu_share or config.cpu, memory_bytes=request.memory_bytes or config.memory_bytes,
                    settings=request.settings,
                )  # fmt: skip
                short_id = await asyncio.to_thread(self._runtime.start, spec)
            finally:
                if not short_id:
                    self._ports.give_back(port)
            return short_id

    async def stop(self, short_id: str) -> None:
        """Let a PE drain and end; raises RefusedError when there is none of that id."""
        await asyncio.to_thread(self._runtime.stop, short_id)

    async def containers(self) -> list[Container]:
        """Return all PEs that have not been removed."""
        return await asyncio.to_thread(self._runtime.containers)

    async def running(self) -> list[Container]:
        """Return the PEs that run."""
        return [container for container in await self.containers() if container.status == "running"]

    def any_ended(self) -> bool:
        """Return whether a PE has ended, where that is known without a delay."""
        return self._runtime.any_ended()

    async def remove_ended(self) -> list[Container]:
        """Remove the PEs that have ended and free their ports; return them."""
        ended = await asyncio.to_thread(self._runtime.remove_ended)
        for container in ended:
            self._ports.give_back(container.port)
        return ended

    async def close(self, timeout_s: float) -> None:
        """End all PEs: let them drain, and kill them after the timeout."""
        await asyncio.to_thread(self._runtime.close, timeout_s)

    async def report(self) -> dict[str, Any]:
        """Return the report to the master: the fields of the legacy protocol, and ours."""
        containers, now = await self.containers(), time.monotonic()
        running = [container for container in containers if container.status == "running"]
        shares = {one.short_id: self._shares.update(one.short_id, one.cpu_seconds, now) for one in running}
        images = sorted({container.c_name for container in running})
        averages = {
            image: {"avg_cpu": sum(of_image) / len(of_image)}
            for image in images
            if (of_image := [
                share for one in running if one.c_name == image and (share := shares[one.short_id]) is not None
            ])
        }  # fmt: skip
        return {
            "node_name": self._name,
            "node_role": 2,
            "node_addr": self._config.reached_at,
            "node_port": self._port,
            **load_averages(),
            "docker": [_describe(container) for container in containers],
            "local_images": images,
            "local_image_stats": averages,
            "cpu": psutil.cpu_percent() / 100,
            "cpu_allotted": sum(container.cpu_share or 0.0 for container in running),
            "cores": self._cores,
        }


def _describe(container: Container) -> dict[str, str]:
    return {
        "short_id": container.short_id,
        "image": container.image,
        "status": container.status,
        "c_name": container.c_name,
    }
