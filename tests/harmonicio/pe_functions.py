"""The functions that the PEs of the tests run."""

import asyncio
import os
import time
from pathlib import Path
from typing import ClassVar

from frameworks.harmonicio.engine.pe import of_batch


@of_batch
class Record:
    """Writes the first 8 bytes (the number) of each message to a file before the message counts as processed."""

    def __init__(self, settings):
        folder = Path(settings["folder"])
        self._fd = os.open(folder / f"{os.getpid()}.numbers", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.most = 1000

    def __call__(self, batch):
        os.write(self._fd, b"".join(bytes(message[:8]).ljust(8, b"\0") for message in batch))


class Keep:
    """Writes each message to its own file; a message that begins with "bad" raises an exception."""

    def __init__(self, settings):
        self._folder, self._count = Path(settings["folder"]), 0

    def __call__(self, message):
        if bytes(message[:3]) == b"bad":
            raise ValueError("a bad message")
        (self._folder / f"{os.getpid()}-{self._count}.message").write_bytes(message)
        self._count += 1


@of_batch
class Busy:
    """A function with idle and close."""

    calls: ClassVar = []

    def __init__(self, settings):
        self._wish = settings.get("wish")

    def __call__(self, batch):
        self.calls.append(len(batch))

    def idle(self):
        self.calls.append("idle")
        if self._wish == "raise":
            raise ValueError("a bad idle")
        return self._wish

    def close(self):
        self.calls.append("close")


class Describe:
    """Writes what its process was given: the names of its variables, and its status."""

    def __init__(self, settings):
        folder = Path(settings["folder"])
        (folder / "status").write_text(Path("/proc/self/status").read_text() + Path("/proc/self/limits").read_text())
        (folder / "variables").write_text("\n".join(sorted(os.environ)))

    def __call__(self, message):
        pass


def plain(message):
    """Do nothing."""


class Hold:
    """Waits with each message until there is a file `go`."""

    def __init__(self, settings):
        self._go = Path(settings["folder"]) / "go"

    def __call__(self, message):
        while not self._go.exists():
            time.sleep(0.01)


def cancel(message):
    """Raise what does not derive from Exception."""
    raise asyncio.CancelledError
