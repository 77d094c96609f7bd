"""The loop around the resource manager: gives it reports and queue lengths, and starts PEs on workers."""

import asyncio
import contextlib
import time
from typing import Any

from frameworks.harmonicio.engine.config import MasterConfig
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.engine.irm.parameters import PROFILES
from frameworks.harmonicio.engine.irm.resource_manager import PePlacement, ResourceManager
from frameworks.harmonicio.engine.master.fleet import Fleet, StreamSpec
from frameworks.harmonicio.engine.master.queue import MessageQueue
from frameworks.harmonicio.engine.master.registry import Registry

_INTERVAL_S = 0.25


class IrmLoop:
    """Runs within the master's loop."""

    def __init__(self, config: MasterConfig, registry: Registry, queue: MessageQueue, fleet: Fleet) -> None:
        self._profile = config.irm_profile
        self._manager = ResourceManager(PROFILES[config.irm_profile], config.irm_fit)
        self._registry, self._queue, self._fleet = registry, queue, fleet
        self._specs: dict[str, StreamSpec] = {}
        self._due = {"pack": 0.0, "profile": 0.0, "predict": 0.0}

    def request(self, spec: StreamSpec) -> None:
        """Request `num` PEs of a stream; the resource manager decides where they run."""
        self._specs[spec.c_name] = spec
        self._manager.request(
            spec.c_name, image=spec.image, volatile=spec.volatile, num=spec.num, size=spec.cpu_share or None
        )

    def forget(self, c_name: str) -> None:
        """Start no PEs of a stream any more."""
        self._specs.pop(c_name, None)
        self._manager.forget(c_name)

    def knows(self, c_name: str) -> bool:
        """Return whether PEs of a stream were requested, and it was not withdrawn since."""
        return c_name in self._specs

    def view(self) -> dict[str, Any]:
        """Return what the status shows."""
        return {"profile": self._profile, **self._manager.view()}

    async def run(self) -> None:
        """Run until cancelled; a failed start is retried as often as its request allows."""
        manager, parameters = self._manager, self._manager.parameters
        while True:
            now, registry = time.monotonic(), self._registry
            busy = {pe.worker for pe in registry.pes.values()}
            manager.follow(list(registry.workers), busy, registry.pes.keys(), registry.ended.keys(), now)
            if self._is_due("profile", parameters.profiling_interval, now):
                self._profile_images()
            if self._is_due("predict", parameters.predictor_interval, now):
                manager.predict(self._queue.lengths(), now)
            if self._is_due("pack", parameters.packing_interval, now):
                manager.pack()
                manager.scale()
                for placement in manager.take_placements():
                    await self._start(placement, now)
            await asyncio.sleep(_INTERVAL_S)

    def _is_due(self, task: str, interval: float, now: float) -> bool:
        if now < self._due[task]:
            return False
        self._due[task] = now + interval
        return True

    def _profile_images(self) -> None:
        """Give the CPU averages in the workers' reports to the profiler."""
        reports: dict[str, list[tuple[float | None, int]]] = {}
        for worker in self._registry.workers.values():
            stats = worker.report.get("local_image_stats")
            containers = [one for one in worker.report.get("docker", []) if isinstance(one, dict)]
            names = [one.get("c_name", one.get("image")) for one in containers]
            for image, values in stats.items() if isinstance(stats, dict) else ():
                average = values.get("avg_cpu") if isinstance(values, dict) else None
                known = float(average) if isinstance(average, int | float) else None
                reports.setdefault(str(image), []).append((known, max(1, names.count(image))))
        for image, averages in reports.items():
            self._manager.profiler.add_reports(image, averages)

    async def _start(self, placement: PePlacement, now: float) -> None:
        """Start a PE on its worker; otherwise its request is retried."""
        request, worker = placement.request, self._registry.workers.get(placement.worker)
        spec = self._specs.get(request.c_name)
        if spec is None:  # withdrawn while another PE was started
            self._manager.forget_request(request)
            return
        if worker is not None:
            with contextlib.suppress(HarmonicError):
                started = StreamSpec(
                    c_name=request.c_name, image=request.image, cpu_share=placement.size, volatile=request.volatile,
                    memory_bytes=spec.memory_bytes, settings=spec.settings,
                )  # fmt: skip
                self._manager.record_start(request, await self._fleet.start(started, worker, now), now)
                return
        self._manager.record_failure(request)
