"""The resource manager's state, without I/O: requests go in, PEs to start on workers come out.

Times are monotonic seconds; sizes are shares of a worker's CPU.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from frameworks.harmonicio.engine.errors import RefusedError
from frameworks.harmonicio.engine.irm.autoscaler import WorkerPool, scale
from frameworks.harmonicio.engine.irm.packing import Fit, Packing
from frameworks.harmonicio.engine.irm.parameters import Parameters
from frameworks.harmonicio.engine.irm.predictor import Predictor
from frameworks.harmonicio.engine.irm.profiler import Profiler
from frameworks.harmonicio.engine.irm.requests import PeRequest, RequestQueue

logger = logging.getLogger(__name__)

_START_TIMEOUT_S = 60.0
"""Time after which a PE that was started and is not registered is taken out of its bin."""
_MAX_REFUSALS = 100


@dataclass(frozen=True, slots=True)
class PePlacement:
    """A request, the worker that its PE is to be started on, and its size there."""

    request: PeRequest
    worker: str
    size: float


class ResourceManager:
    """Packs requested PEs onto workers, learns their sizes, and requests more when queues grow.

    Args:
        parameters: one of the published sets.
        fit: rule of the packing.
    """

    def __init__(self, parameters: Parameters, fit: Fit) -> None:
        self.parameters = parameters
        self.packing, self.workers = Packing(fit), WorkerPool()
        self.requests = RequestQueue(parameters.container_request_ttl)
        self.profiler = Profiler(parameters.minimum_cpu_size)
        self._predictors: dict[str, Predictor] = {}
        self._images: dict[str, str] = {}
        self._packed: list[tuple[PeRequest, int]] = []
        self._started: dict[str, tuple[int, float]] = {}
        """started PEs: the key of their item, and when they were started"""
        self.missing_workers = 0
        self.refusals: list[str] = []

    def request(self, c_name: str, *, image: str, volatile: bool, num: int, size: float | None) -> None:
        """Request `num` PEs of a stream; `size` is learnt when left out."""
        self._images[c_name] = image
        for _ in range(num):
            self.requests.add(c_name, image=image, volatile=volatile, size=size or self.profiler.size(c_name))

    def forget(self, c_name: str) -> None:
        """Drop a stream and the requests for its PEs; those that run leave their bins when they end."""
        self._images.pop(c_name, None)
        self._predictors.pop(c_name, None)
        self.requests.forget(c_name)
        for request in [one for one, _ in self._packed if one.c_name == c_name]:
            self.forget_request(request)
        self._packed = [(one, index) for one, index in self._packed if one.c_name != c_name]

    def forget_request(self, request: PeRequest) -> None:
        """Take a request out of its bin without a retry."""
        self.packing.remove(request.key)

    def follow(
        self, registered: list[str], busy: set[str], pes: Collection[str], ended: Collection[str], now: float
    ) -> None:
        """Take ended PEs out of their bins, and scale the workers.

        Args:
            registered: names of the workers.
            busy: names of the workers that have PEs.
            pes: ids of the registered PEs.
            ended: ids of PEs that have ended.
            now: monotonic seconds.
        """
        for pe_id, (key, since) in list(self._started.items()):
            if pe_id in ended or (pe_id not in pes and now > since + _START_TIMEOUT_S):
                self.packing.remove(key)
                del self._started[pe_id]
        self.workers.update(registered, busy)
        self.scale()

    def scale(self) -> None:
        """Enable or release workers for the bins in use."""
        self.missing_workers = scale(self.workers, len(self.packing.bins))

    def predict(self, lengths: Mapping[str, int], now: float) -> None:
        """Request volatile PEs for streams whose queue is long or grows; `lengths` by stream, in messages."""
        for c_name, image in self._images.items():
            predictor = self._predictors.setdefault(c_name, Predictor(self.parameters))
            for _ in range(predictor.update(lengths.get(c_name, 0), now)):
                self.requests.add(c_name, image=image, volatile=True, size=self.profiler.size(c_name))

    def pack(self) -> None:
        """Assign a bin to every request; a request that fits none is refused, and logged."""
        for request in self.requests.drain():
            size = request.size if request.size is not None else self.profiler.size(request.c_name)
            try:
                index = self.packing.put(request.key, size if size is not None else self.parameters.default_cpu_share)
            except RefusedError as error:
                logger.error("a PE of %s is refused: %s", request.c_name, error)  # noqa: TRY400  one line is enough
                self.refusals = [*self.refusals[1 - _MAX_REFUSALS :], f"{request.c_name}: {error}"]
                continue
            self._packed.append((request, index))

    def take_placements(self) -> list[PePlacement]:
        """Remove the packed requests; return those whose worker is enabled. The others are retried."""
        packed, self._packed = self._packed, []
        workers, placements = self.workers.workers(), list[PePlacement]()
        for request, index in packed:
            size = self.packing.bins[index].items.get(request.key) if index < len(self.packing.bins) else None
            if index < len(workers) and size is not None:
                placements.append(PePlacement(request, workers[index], size))
            else:
                self.record_failure(request)
        return placements

    def record_start(self, request: PeRequest, pe_id: str, now: float) -> None:
        """Record that the PE of a request was started."""
        self._started[pe_id] = (request.key, now)

    def record_failure(self, request: PeRequest) -> None:
        """Take a request that could not be started out of its bin, and retry it."""
        self.packing.remove(request.key)
        if not self.requests.retry(request):
            logger.warning("a PE of %s could not be placed, and is given up", request.c_name)

    def view(self) -> dict[str, Any]:
        """Return what the status shows."""
        return {
            "fit": self.packing.fit,
            "bins": [{"free": one.free, "items": list(one.items.values())} for one in self.packing.bins],
            "lower_bound": self.packing.lower_bound,
            "workers": self.workers.workers(),
            "missing_workers": self.missing_workers,
            "waiting": len(self.requests),
            "dropped": self.requests.dropped,
            "profiles": {image: profile.mean for image, profile in self.profiler.profiles.items()},
            "refused": self.refusals[-10:],
        }
