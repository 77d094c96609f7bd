"""The worker autoscaler: how many workers there should be, and a provider that makes it so."""

from typing import Protocol

from frameworks.harmonicio.engine.irm.packing import idle_buffer


def target_workers(bins: int) -> int:
    """Bins in use, and the buffer of idle workers beside them."""
    return bins + idle_buffer(bins)


class Provider(Protocol):
    """Where workers come from: registered ones that are enabled, or virtual machines that are made."""

    def workers(self) -> list[str]:
        """Those that can be used now, in the order of their bins."""

    def add(self) -> bool:
        """Begin to make one more usable; False when there is none to be had."""

    def release(self) -> bool:
        """Stop using the last one; False when it is still needed."""


class Registered:
    """Enables workers that have registered, and makes no new ones; as the original does."""

    def __init__(self) -> None:
        self._known: list[str] = []
        self._active: list[str] = []
        self._busy: set[str] = set()

    def saw(self, known: list[str], busy: set[str]) -> None:
        """These workers are there now, and on these are PEs."""
        self._known, self._busy = known, busy
        self._active = [name for name in self._active if name in known]

    def workers(self) -> list[str]:
        return list(self._active)

    def add(self) -> bool:
        idle = [name for name in self._known if name not in self._active]
        self._active += idle[:1]
        return bool(idle)

    def release(self) -> bool:
        if not self._active or self._active[-1] in self._busy:
            return False
        self._active.pop()
        return True


def scale(provider: Provider, bins: int) -> int:
    """Bring the provider to the target, one step at most in each direction; the workers still missing (negative: too many)."""
    target, there = target_workers(bins), len(provider.workers())
    if there < target:
        while len(provider.workers()) < target and provider.add():
            pass
    elif there > target:
        provider.release()
    return target - len(provider.workers())
