"""Messages as files: each appears complete, by a rename, in a folder that the framework watches.

A folder does not push back. Writing a file takes its time, and that time is the generator's limit: `send` takes all that it is
offered, however long it lasts (its chunks become small where that is long: see bench.workload.open_loop).
"""

import errno
import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Event

from msgspec import Struct

from bench.errors import PluginError
from bench.model.cell import Cell
from bench.model.message_codec import HEADER_BYTES
from bench.plugins.environment import OURS
from bench.plugins.protocols import Endpoint, RunEnvironment
from bench.workload.batch_writer import Filler
from bench.workload.rate_meter import RateMeter, stamp

logger = logging.getLogger(__name__)

COMPLETE, UNFINISHED = "complete", "unfinished"
"""Sub-folders of a cell's folder: one is watched, the other stands beside it on the same file system."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the files lie, unless the site file says (`files.folder`)."""

    folder: str | None = None
    """such as /dev/shm; the run's data folder when left out"""


class Source:
    """An empty folder for each cell."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folder: Path | None = None

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:
        """A file can hold anything."""

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:  # noqa: ARG002  all cells look alike to it
        site = env.site.files
        chosen = site.folder if site is not None else self._settings.folder
        within = Path(chosen) if chosen else env.data
        try:
            if site is None:  # what the site shares is not made here, where it would be a folder of this machine
                within.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix=OURS, dir=within)).resolve()
            if within != env.data:
                (env.data / self._folder.name).symlink_to(self._folder)  # so that it is found after a crash
            for name in (COMPLETE, UNFINISHED):
                (self._folder / name).mkdir()
        except OSError as problem:
            raise PluginError("files", "open", f"no folder can be made in {within}: {problem.strerror}") from problem
        self._folder.chmod(0o755)  # a framework may run as somebody else
        return Endpoint("files", str(self._folder / COMPLETE), ordered=False)

    def clear(self) -> None:
        if self._folder is not None:
            for entry in os.scandir(self._folder / COMPLETE):
                Path(entry.path).unlink(missing_ok=True)

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class Sender:
    """Writes each message to a file of its own; confirmed is what has its final name, failed what the disk has no room for."""

    gathers_from = 4096

    def __init__(self) -> None:
        self._unfinished = self._complete = -1
        self._where, self._prefix = "", secrets.token_hex(4)
        self._taken = self._failed = 0

    def open(self, endpoint: Endpoint) -> None:
        complete = Path(endpoint.address)
        self._where = str(complete)
        try:
            self._complete = os.open(complete, os.O_RDONLY | os.O_DIRECTORY)
            self._unfinished = os.open(complete.parent / UNFINISHED, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as problem:
            raise PluginError("files", "open", f"{problem.filename}: {problem.strerror}") from problem

    def send(self, messages: Sequence[bytes]) -> int:
        for message in messages:
            self._try(message)
        return len(messages)

    def send_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler]) -> int:
        for head, rest in zip(heads, fillers, strict=True):
            self._try(head, rest)
        return len(heads)

    def confirmed(self) -> tuple[int, int]:
        return self._taken - self._failed, self._failed

    def close(self) -> None:
        for folder in (self._complete, self._unfinished):
            if folder >= 0:
                os.close(folder)
        self._complete = self._unfinished = -1

    def _try(self, *pieces: Filler) -> None:
        """Write one message, or count it as failed where the disk has no room."""
        try:
            self._write(f"{self._prefix}-{self._taken:012d}", pieces)
        except OSError as problem:
            self._count_failure(problem)
        self._taken += 1

    def _write(self, name: str, pieces: Sequence[Filler]) -> None:
        """System calls relative to open folders: half the time of paths."""
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=self._unfinished)
        try:
            written, size = os.writev(file, pieces), sum(map(len, pieces))
            if written < size:  # a signal came between, or the disk is about to be full
                _write_rest(file, b"".join(pieces), written)
        except OSError:
            os.ftruncate(file, 0)  # what could not be finished takes no room
            raise
        finally:
            os.close(file)
        os.rename(name, name, src_dir_fd=self._unfinished, dst_dir_fd=self._complete)

    def _count_failure(self, problem: OSError) -> None:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise PluginError("files", "send", f"{self._where}: {problem.strerror}") from problem
        if self._failed == 0:
            logger.warning("the disk is full: messages cannot be written to %s", self._where)
        self._failed += 1


def _write_rest(file: int, message: bytes, written: int) -> None:
    while written < len(message):
        written += os.write(file, memoryview(message)[written:])


def discard(endpoint: Endpoint, over: Event) -> None:
    """Remove complete files, those of half a second at a time: nobody lists a folder all the time."""
    while not over.wait(0.5):
        for entry in os.scandir(endpoint.address):
            os.unlink(entry.path)  # noqa: PTH108  a Path for each of 50,000 files a second would be the work


def bare(endpoint: Endpoint, message: bytes, meter: RateMeter, _: Path, *, stamped: bool = True) -> None:
    """The plainest loop: open, write, close, rename, by path; number and time are written into one and the same memory."""
    complete, unfinished = endpoint.address, str(Path(endpoint.address).parent / UNFINISHED)
    count, prefix, content = 0, secrets.token_hex(4), bytearray(message)
    while meter.keep_measuring(count):
        name = f"{prefix}-{count:012d}"
        file = os.open(f"{unfinished}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        if stamped:
            content[:HEADER_BYTES] = stamp(count)
        os.write(file, content)
        os.close(file)
        os.rename(f"{unfinished}/{name}", f"{complete}/{name}")  # noqa: PTH104  as above
        count += 1


BASELINES = {"bare": bare, "bare-constant": partial(bare, stamped=False)}
