"""The thin loop around the resource manager: what is reported goes in, starts on workers come out."""

import asyncio
import contextlib
import logging
import time
from typing import Any

from frameworks.harmonicio.engine.config import MasterConfig
from frameworks.harmonicio.engine.errors import HarmonicError, Refused
from frameworks.harmonicio.engine.irm.autoscaler import Registered, scale
from frameworks.harmonicio.engine.irm.packing import Packing
from frameworks.harmonicio.engine.irm.parameters import PROFILES
from frameworks.harmonicio.engine.irm.predictor import Predictor
from frameworks.harmonicio.engine.irm.profiler import Profiler
from frameworks.harmonicio.engine.irm.requests import Request, RequestQueue
from frameworks.harmonicio.engine.master.fleet import Fleet, Wanted
from frameworks.harmonicio.engine.master.queue import Backlog
from frameworks.harmonicio.engine.master.registry import Registry

logger = logging.getLogger(__name__)

TICK = 0.25
_FORGET_AFTER = 60.0
"""Seconds after which a PE that was started and is not there is taken out of its bin."""


class IrmLoop:
    """Runs within the master's loop."""

    def __init__(self, config: MasterConfig, registry: Registry, backlog: Backlog, fleet: Fleet) -> None:
        self.profile = config.irm_profile
        self.parameters = PROFILES[config.irm_profile]
        self._registry, self._backlog, self._fleet = registry, backlog, fleet
        self.packing, self.provider = Packing(config.irm_fit), Registered()
        self.queue, self.profiler = (
            RequestQueue(self.parameters.container_request_ttl),
            Profiler(self.parameters.minimum_cpu_size),
        )
        self._predictors: dict[str, Predictor] = {}
        self._templates: dict[str, Wanted] = {}
        self._to_start: list[tuple[Request, int]] = []
        self._placed: dict[str, tuple[int, float]] = {}
        """started PEs: the key of their item, and since when"""
        self._due = {"pack": 0.0, "profile": 0.0, "predict": 0.0}
        self.missing_workers = 0
        self.refused: list[str] = []

    def request(self, wanted: Wanted) -> None:
        """Ask for so many PEs; the loop decides where they run."""
        self._templates[wanted.c_name] = wanted
        for _ in range(wanted.num):
            size = wanted.cpu_share or self.profiler.size(wanted.c_name)
            self.queue.ask(wanted.c_name, image=wanted.image, volatile=wanted.volatile, size=size)

    def knows(self, c_name: str) -> bool:
        """Whether PEs of that name were ever asked for."""
        return c_name in self._templates

    def view(self) -> dict[str, Any]:
        """For the status."""
        return {
            "profile": self.profile,
            "fit": self.packing.fit,
            "bins": [{"free": space.free, "items": list(space.items.values())} for space in self.packing.bins],
            "lower_bound": self.packing.lower_bound,
            "workers": self.provider.workers(),
            "missing_workers": self.missing_workers,
            "waiting": len(self.queue),
            "dropped": self.queue.dropped,
            "profiles": {image: profile.mean for image, profile in self.profiler.profiles.items()},
            "refused": self.refused[-10:],
        }

    async def run(self) -> None:
        """For ever; a start that fails is tried again as often as its request says."""
        while True:
            now = time.monotonic()
            self._follow(now)
            if self._is_due("profile", self.parameters.profiling_interval, now):
                self._learn()
            if self._is_due("predict", self.parameters.predictor_interval, now):
                self._predict(now)
            if self._is_due("pack", self.parameters.packing_interval, now):
                self._pack()
                await self._start(now)
            await asyncio.sleep(TICK)

    def _is_due(self, what: str, interval: float, now: float) -> bool:
        if now < self._due[what]:
            return False
        self._due[what] = now + interval
        return True

    def _follow(self, now: float) -> None:
        """PEs that have ended leave their bins; workers that came or went are known to the provider."""
        for pe_id, (key, since) in list(self._placed.items()):
            gone = pe_id in self._registry.gone
            if gone or (pe_id not in self._registry.pes and now > since + _FORGET_AFTER):
                self.packing.remove(key)
                del self._placed[pe_id]
        self.provider.saw(list(self._registry.workers), {pe.worker for pe in self._registry.pes.values()})
        self.missing_workers = scale(self.provider, len(self.packing.bins))

    def _learn(self) -> None:
        reports: dict[str, list[tuple[float | None, int]]] = {}
        for worker in self._registry.workers.values():
            stats = worker.report.get("local_image_stats")
            for image, found in stats.items() if isinstance(stats, dict) else ():
                average = found.get("avg_cpu") if isinstance(found, dict) else None
                names = [
                    one.get("c_name", one.get("image"))
                    for one in worker.report.get("docker", [])
                    if isinstance(one, dict)
                ]
                known = float(average) if isinstance(average, int | float) else None
                reports.setdefault(str(image), []).append((known, max(1, names.count(image))))
        for image, found in reports.items():
            self.profiler.learn(image, found)

    def _predict(self, now: float) -> None:
        for c_name, template in self._templates.items():
            predictor = self._predictors.setdefault(c_name, Predictor(self.parameters))
            for _ in range(predictor.look(self._backlog.length(c_name), now)):
                self.queue.ask(c_name, image=template.image, volatile=True, size=self.profiler.size(c_name))

    def _pack(self) -> None:
        """Give every request a bin; one that fits none is refused, and said so."""
        for request in self.queue.drain():
            size = request.size if request.size is not None else self.profiler.size(request.c_name)
            try:
                index = self.packing.put(request.key, size if size is not None else self.parameters.default_cpu_share)
            except Refused as problem:
                logger.error("a PE of %s is refused: %s", request.c_name, problem)  # noqa: TRY400  one line is enough
                self.refused = [*self.refused[-99:], f"{request.c_name}: {problem}"]
                continue
            self._to_start.append((request, index))

    async def _start(self, now: float) -> None:
        """Start what is packed, where its worker is there; otherwise its request is put back."""
        self.missing_workers = scale(self.provider, len(self.packing.bins))
        waiting, self._to_start = self._to_start, []
        for request, index in waiting:
            workers = self.provider.workers()
            worker = self._registry.workers.get(workers[index]) if index < len(workers) else None
            size = self.packing.bins[index].items.get(request.key) if index < len(self.packing.bins) else None
            template = self._templates[request.c_name]
            if worker is not None and size is not None:
                with contextlib.suppress(HarmonicError):
                    wanted = Wanted(c_name=request.c_name, image=request.image, cpu_share=size, volatile=request.volatile,
                                    memory_bytes=template.memory_bytes, settings=template.settings)  # fmt: skip
                    self._placed[await self._fleet.start(wanted, worker, now)] = (request.key, now)
                    continue
            self.packing.remove(request.key)
            if not self.queue.again(request):
                logger.warning("a PE of %s could not be placed, and is given up", request.c_name)
