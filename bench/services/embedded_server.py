"""Embedded servers: child processes with a data folder of their own, started empty and deleted when they are closed."""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Generic, TypeVar

from bench.system.child import Child

AddressT = TypeVar("AddressT")


class EmbeddedServer(Generic[AddressT]):
    """A running server that answers its clients at `address`."""

    def __init__(self, child: Child, folder: Path, address: AddressT) -> None:
        self.address = address
        self._child, self._folder = child, folder

    def alive(self) -> bool:
        """Return whether its process runs."""
        return self._child.alive()

    def close(self) -> None:
        """Stop it and delete its data; idempotent."""
        self._child.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


class ServerStart:
    """A server that is being started: its data folder, and what is undone if the start fails."""

    def __init__(self, folder: Path, undo: ExitStack) -> None:
        self.folder, self._undo = folder, undo

    def own(self, child: Child, settings: Path) -> Child:
        """Kill the child if the start fails; keep a copy of its settings beside its log, which outlives the folder."""
        self._undo.callback(child.kill)
        shutil.copy(settings, child.log.with_suffix(".conf"))
        return child


@contextlib.contextmanager
def start_embedded(name: str, data: Path, note: Callable[[str], None]) -> Iterator[ServerStart]:
    """Make a data folder for a server that the block starts; delete it, and end the server, if the block raises.

    Args:
        name: of the server, for the user.
        data: parent of the folder.
        note: gets a line before the start and one when the server is ready.
    """
    note(f"{name}: starting")
    began = time.monotonic()
    data.mkdir(parents=True, exist_ok=True)
    with ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix=f"{name.lower()}-", dir=data))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        yield ServerStart(folder, undo)
        undo.pop_all()
    note(f"{name}: ready after {time.monotonic() - began:.1f} s")
