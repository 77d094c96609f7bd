"""Reads complete files from a folder, a message each, and deletes a file once the next ones are asked for."""

import contextlib
import os
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from bench.errors import PluginError
from bench.plugins.plugin import ConsumerPlugin
from bench.plugins.protocols import Endpoint

LOOK_INTERVAL_S = 0.005
"""Seconds between two looks into an empty folder."""


class FilesConsumer:
    """A reader of the files whose names are the member's share; all members together read each file once.

    Args:
        endpoint: what a source has opened.
        member: number of this reader, from 0.
        members: readers that share the endpoint.
    """

    def __init__(self, endpoint: Endpoint, member: int, members: int) -> None:
        self._names: deque[str] = deque()
        self._given: list[str] = []
        self._folder, self._member, self._members = Path(endpoint.address), member, members
        if not self._folder.is_dir():
            raise PluginError("files", "open", f"there is no folder {self._folder}")

    def take(self, max_messages: int, timeout: float) -> Sequence[bytes]:
        """Return up to `max_messages` messages of one part, as soon as there are any; none after `timeout` seconds.

        Raises:
            PluginError: a file cannot be read.
        """
        self._delete()
        deadline = time.monotonic() + timeout
        while not self._names and not self._look():
            if time.monotonic() >= deadline:
                return ()
            time.sleep(LOOK_INTERVAL_S)
        self._given = [self._names.popleft() for _ in range(min(max_messages, len(self._names)))]
        try:
            return [(self._folder / name).read_bytes() for name in self._given]
        except OSError as problem:
            raise PluginError("files", "take", f"{problem.filename}: {problem.strerror}") from problem

    def close(self) -> None:
        """Disconnect."""
        self._delete()

    def _look(self) -> bool:
        """Return whether there are files of this member's.

        The oldest names first, which a source writes in ascending order.
        """
        found = (entry.name for entry in os.scandir(self._folder))
        self._names.extend(sorted(name for name in found if crc32(name.encode()) % self._members == self._member))
        return bool(self._names)

    def _delete(self) -> None:
        """Delete what was returned last: it is processed by now."""
        for name in self._given:
            with contextlib.suppress(FileNotFoundError):  # the source may have been cleared
                (self._folder / name).unlink()
        self._given = []


plugin = ConsumerPlugin(open=FilesConsumer)
