"""Checks before a run: files, addresses and folders that a site names, Java, jars."""

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.config.address import Address
from bench.errors import HarnessError
from bench.services.java import java
from bench.services.maven_jars import LOCK, has_jars
from bench.services.ports import listen_at

CONNECT_TIMEOUT_S = 2.0
"""For a connection to an endpoint of the site."""


class PendingDownload(str):
    """A sentence about what is missing here and will be downloaded by whoever needs it."""

    __slots__ = ()


def missing_java() -> list[str]:
    """Return why embedded servers cannot start, in a sentence; nothing when Java is there."""
    try:
        java()
    except HarnessError as problem:
        return [str(problem)]
    return []


def missing_jars(sets: Sequence[str], cache: Path, *, lock: Path = LOCK) -> list[PendingDownload]:
    """Return the sets of jars that are not in the cache, a sentence each."""
    return [
        PendingDownload(f"the jars of {name} are not in the cache: they will be downloaded first")
        for name in sets
        if not has_jars(name, cache, lock=lock)
    ]


def unreadable_files(files: Iterable[tuple[str, str]]) -> list[str]:
    """Return the files, by key, that cannot be read here; a sentence each."""
    return [f"{key}: {path} cannot be read" for key, path in files if not _readable(path)]


def unavailable_addresses(listens: Mapping[str, str]) -> list[str]:
    """Return the addresses of this machine, by key, at which nobody can listen now; a sentence each."""
    return [f"{key}: {why}" for key, address in listens.items() if (why := _listen_error(address)) is not None]


def unwritable_folders(folders: Mapping[str, str]) -> list[str]:
    """Return the folders, by key, that cannot be written here; a sentence each."""
    return [
        f"{key}: {folder} is no folder that can be written; is it mounted?"
        for key, folder in folders.items()
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK)
    ]


def connection_error(address: str) -> OSError | ValueError | None:
    """Return why no connection to host:port is possible within CONNECT_TIMEOUT_S; None when it is."""
    try:
        socket.create_connection(Address.parse(address), timeout=CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError) as problem:
        return problem
    return None


def _readable(path: str) -> bool:
    return os.access(path, os.R_OK) and not Path(path).is_dir()


def _listen_error(address: str) -> str | None:
    try:
        listen_at(Address.parse(address)).close()
    except (OSError, ValueError, OverflowError) as problem:
        return f"cannot listen at {address} ({getattr(problem, 'strerror', None) or problem})"
    return None
