"""The worker autoscaler: the target number of workers, and a provider that enables or releases them."""

from typing import Protocol

from frameworks.harmonicio.engine.irm.packing import idle_buffer


def target_workers(bins: int) -> int:
    """Return the bins in use plus the buffer of idle workers."""
    return bins + idle_buffer(bins)


class WorkerProvider(Protocol):
    """A source of workers: registered ones that are enabled, or virtual machines that are created."""

    def workers(self) -> list[str]:
        """Return the usable workers, in the order of their bins."""

    def add(self) -> bool:
        """Begin to make one more worker usable; return False when none is available."""

    def release(self) -> bool:
        """Stop using the last worker; return False when it is still needed."""


class WorkerPool:
    """Enables workers that have registered and creates no new ones, as the original does."""

    def __init__(self) -> None:
        self._registered: list[str] = []
        self._active: list[str] = []
        self._busy: set[str] = set()

    def update(self, registered: list[str], busy: set[str]) -> None:
        """Set the workers that are registered, and those that have PEs."""
        self._registered, self._busy = registered, busy
        self._active = [name for name in self._active if name in registered]

    def workers(self) -> list[str]:
        """Return the enabled workers, in the order of their bins."""
        return list(self._active)

    def add(self) -> bool:
        """Enable one more worker; return False when all are."""
        idle = [name for name in self._registered if name not in self._active]
        self._active += idle[:1]
        return bool(idle)

    def release(self) -> bool:
        """Disable the last worker; return False when it has PEs."""
        if not self._active or self._active[-1] in self._busy:
            return False
        self._active.pop()
        return True


def scale(provider: WorkerProvider, bins: int) -> int:
    """Add workers up to the target, or release one; return how many are still missing (negative: too many)."""
    target, present = target_workers(bins), len(provider.workers())
    if present < target:
        while len(provider.workers()) < target and provider.add():
            pass
    elif present > target:
        provider.release()
    return target - len(provider.workers())
