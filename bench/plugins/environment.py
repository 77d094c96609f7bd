"""The environment of a run: the site, child processes, folders, and the resources that are kept between cells."""

import logging
import shutil
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar, cast

from bench.config.site import Site
from bench.errors import ServiceError
from bench.system.supervisor import Supervisor

logger = logging.getLogger(__name__)

FOLDER_PREFIX = "stream-bench-"
"""Of folders that we make outside the run folder."""


def delete_data(folder: Path) -> None:
    """Delete a run's data, and what links in it lead to: a source may keep its data on another disk."""
    for entry in folder.glob("*"):
        if entry.is_symlink() and entry.readlink().name.startswith(FOLDER_PREFIX):
            shutil.rmtree(entry.readlink(), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


class Resource(Protocol):
    """A thing that is kept between cells: a server, a session, a load generator's process."""

    def alive(self) -> bool:
        """Return whether it can go on serving."""

    def close(self) -> None:
        """End it; idempotent."""


R = TypeVar("R", bound=Resource)


class RunEnvironment:
    """One per run. On exit it closes the resources, the last first, ends every child process, and deletes the data.

    Several threads may use it: a resource is made once, and who asks for it meanwhile waits.

    Attributes:
        site: where services exist already.
        supervisor: starts child processes.
        data: folder for data of sources; deleted at the end of the run.
        cache: folder for downloads; outlives the run.
        cores: cores of this machine that a framework may use.
        max_workers: of a framework whose workers come and go; None where their number is fixed.
        note: called with a line for the user, before something takes long.
        web: whether the load generator opens a page of its own, on loopback.
        load_seconds: by session and source: how long the processes were under load so far.
    """

    def __init__(  # noqa: PLR0913  what a run has, one by one
        self,
        site: Site,
        supervisor: Supervisor,
        data: Path,
        cache: Path,
        *,
        cores: int,
        max_workers: int | None = None,
        note: Callable[[str], None] = logger.info,
        web: bool = False,
    ) -> None:
        self.site, self.supervisor, self.data, self.cache = site, supervisor, data, cache
        self.cores, self.max_workers, self.note, self.web = cores, max_workers, note, web
        self.load_seconds: dict[Hashable, float] = {}
        self._resources: dict[Hashable, Resource] = {}
        self._locks: dict[Hashable, threading.RLock] = {}
        self._closed = False

    def __enter__(self) -> "RunEnvironment":
        self.data.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        try:
            while self._resources:
                self._resources.popitem()[1].close()
        finally:
            self.supervisor.close()
            delete_data(self.data)

    def cached_resource(self, key: Hashable, factory: Callable[[], R]) -> R:
        """Return the cached resource for `key`; create it with `factory` if it is missing or dead.

        Raises:
            ServiceError: the environment was closed meanwhile.
        """
        with self._locks.setdefault(key, threading.RLock()):
            resource = self._resources.get(key)
            if resource is not None and not resource.alive():
                self.release(key)
                resource = None
            if resource is None:
                resource = self._resources[key] = factory()
                if self._closed:  # it came too late for `__exit__`
                    self.release(key)
                    raise ServiceError("the run is being stopped")
        return cast("R", resource)

    def release(self, key: Hashable) -> None:
        """Close the resource for `key`, if there is one."""
        resource = self._resources.pop(key, None)
        if resource is not None:
            resource.close()
