"""A folder of files as a source: each message becomes a complete file by a rename.

A folder does not push back. Writing a file takes its time, and that time is the generator's limit: `send` takes all
that it is offered, however long it lasts (its batches become small where that is long: see bench.workload.open_loop).
"""

import os
import shutil
import tempfile
from pathlib import Path

from msgspec import Struct

from bench.errors import PluginError
from bench.model.cell import Cell
from bench.plugins.environment import FOLDER_PREFIX, RunEnvironment
from bench.plugins.protocols import Endpoint
from producers.files.site import FILES_SITE

COMPLETE, UNFINISHED = "complete", "unfinished"
"""Sub-folders of a cell's folder, on the same file system: only the first one is watched."""


class FilesSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The folder of the files, unless the site file names one (`files.folder`)."""

    folder: str | None = None
    """such as /dev/shm; the run's data folder when left out"""


class FilesSource:
    """An empty folder for each cell."""

    def __init__(self, settings: FilesSettings) -> None:
        self._settings = settings
        self._folder: Path | None = None

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:
        """Return None: a file can hold anything."""

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:  # noqa: ARG002  all cells look alike to it
        """Make what the cell needs and return its endpoint.

        Raises:
            PluginError: the folders cannot be made.
        """
        site = FILES_SITE.read(env.site)
        chosen = site.folder if site is not None else self._settings.folder
        within = Path(chosen) if chosen else env.data
        try:
            if site is None:  # what the site shares is not made here, where it would be a folder of this machine
                within.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=within)).resolve()
            if within != env.data:
                (env.data / self._folder.name).symlink_to(self._folder)  # so that it is found after a crash
            for name in (COMPLETE, UNFINISHED):
                (self._folder / name).mkdir()
        except OSError as problem:
            raise PluginError("files", "open", f"no folder can be made in {within}: {problem.strerror}") from problem
        self._folder.chmod(0o755)  # a framework may run as somebody else
        if env.site.load is not None:  # so may load workers, which write there
            for name in (COMPLETE, UNFINISHED):
                (self._folder / name).chmod(0o777)
        return Endpoint("files", str(self._folder / COMPLETE), ordered=False)

    def reset(self) -> None:
        """Delete the files that were read."""
        if self._folder is not None:
            for entry in os.scandir(self._folder / COMPLETE):
                Path(entry.path).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove what `open` made."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
