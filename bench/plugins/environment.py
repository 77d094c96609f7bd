"""What rooms stand on during a run: the site, child processes, folders, and what is kept between cells."""

import logging
import shutil
from collections.abc import Callable, Hashable
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar, cast

from bench.config.site import Site
from bench.system.supervisor import Supervisor

logger = logging.getLogger(__name__)

OURS = "stream-bench-"
"""How the name of a folder begins that we made outside the run's folder."""


def delete_data(folder: Path) -> None:
    """Delete a run's data, and what links in it lead to: a source may keep its data on another disk."""
    for entry in folder.glob("*"):
        if entry.is_symlink() and entry.readlink().name.startswith(OURS):
            shutil.rmtree(entry.readlink(), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


class Closable(Protocol):
    """Something that stands between cells (bench.plugins.protocols)."""

    def alive(self) -> bool: ...

    def close(self) -> None: ...


Resource = TypeVar("Resource", bound=Closable)


class RunEnvironment:
    """One for a run. Leaving it closes what was kept, the last first, ends every child, and deletes the data."""

    def __init__(
        self,
        site: Site,
        supervisor: Supervisor,
        data: Path,
        cache: Path,
        *,
        cores: int,
        note: Callable[[str], None] = logger.info,
        workers: int = 1,
        web: bool = False,
    ) -> None:
        self.site, self.supervisor, self.data, self.cache, self.cores, self.note = (
            site,
            supervisor,
            data,
            cache,
            cores,
            note,
        )
        self.workers, self.web = workers, web
        self._resources: dict[Hashable, Closable] = {}

    def __enter__(self) -> "RunEnvironment":
        self.data.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            while self._resources:
                self._resources.popitem()[1].close()
        finally:
            self.supervisor.close()
            delete_data(self.data)

    def cached_resource(self, key: Hashable, opened: Callable[[], Resource]) -> Resource:
        """The thing of that key: the one that stands, or, where none stands or it died, a new one."""
        deployed = self._resources.get(key)
        if deployed is not None and not deployed.alive():
            del self._resources[key]
            deployed.close()
            deployed = None
        if deployed is None:
            deployed = self._resources[key] = opened()
        return cast("Resource", deployed)

    def release(self, key: Hashable) -> None:
        """Close the thing of that key, if it stands."""
        deployed = self._resources.pop(key, None)
        if deployed is not None:
            deployed.close()
