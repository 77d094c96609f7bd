"""The sender of files: writes each message to a file of its own."""

import errno
import logging
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from bench.errors import PluginError
from bench.plugins.protocols import Endpoint
from bench.workload.batch_writer import Filler
from producers.files.source import UNFINISHED

logger = logging.getLogger(__name__)


class FilesSender:
    """Writer of a file for each message.

    Confirmed is what has its final name, failed what the disk has no space for.
    """

    gathers_from = 4096

    def __init__(self, endpoint: Endpoint) -> None:
        complete = Path(endpoint.address)
        self._unfinished = self._complete = -1
        self._where, self._prefix = str(complete), secrets.token_hex(4)
        self._taken = self._failed = 0
        try:
            self._complete = os.open(complete, os.O_RDONLY | os.O_DIRECTORY)
            self._unfinished = os.open(complete.parent / UNFINISHED, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as problem:
            self.close()
            raise PluginError("files", "open", f"{problem.filename}: {problem.strerror}") from problem

    def send(self, messages: Sequence[bytes]) -> int:
        """Offer messages; return how many were taken."""
        for message in messages:
            self._try(message)
        return len(messages)

    def send_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler]) -> int:
        """Offer messages in two pieces, header and filler; return how many were taken."""
        for head, rest in zip(heads, fillers, strict=True):
            self._try(head, rest)
        return len(heads)

    def confirmed(self) -> tuple[int, int]:
        """Return (confirmed, failed) so far."""
        return self._taken - self._failed, self._failed

    def close(self) -> None:
        """Disconnect; what is not confirmed is given up."""
        for folder in (self._complete, self._unfinished):
            if folder >= 0:
                os.close(folder)
        self._complete = self._unfinished = -1

    def _try(self, *pieces: Filler) -> None:
        """Write one message, or count it as failed where the disk is full."""
        try:
            self._write(f"{self._prefix}-{self._taken:012d}", pieces)
        except OSError as problem:
            self._count_failure(problem)
        self._taken += 1

    def _write(self, name: str, pieces: Sequence[Filler]) -> None:
        """Write one file by system calls relative to open folders: half the time of paths."""
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=self._unfinished)
        try:
            written, size = os.writev(file, pieces), sum(map(len, pieces))
            if written < size:  # a signal came between, or the disk is about to be full
                _write_rest(file, b"".join(pieces), written)
        except OSError:
            os.ftruncate(file, 0)  # what could not be finished takes no space
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
