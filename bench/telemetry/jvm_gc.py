"""Garbage collection of Java virtual machines, from the counter files they keep for jstat (hsperfdata 2)."""

import os
import struct
from collections.abc import Iterator
from pathlib import Path

_MAGIC = b"\xca\xfe\xc0\xc0"
_PROLOGUE, _ENTRY = struct.Struct("<4sBBBBiiqii"), struct.Struct("<iiiBBBBi")
_LITTLE_ENDIAN, _MAJOR_VERSION, _LONG = 1, 2, ord("J")
_FOLDER = "/tmp"  # noqa: S108  every JVM on Linux writes it there, whatever TMPDIR is
_MAX_FILE_BYTES = 2**20
"""By default the file has 32 kB."""
_FREQUENCY, _COLLECTOR = "sun.os.hrt.frequency", "sun.gc.collector."


def gc_seconds(pid: int) -> float | None:
    """Return the seconds that a JVM has paused its program for its collectors so far; None without such counters."""
    values = counters(pid)
    if not values.get(_FREQUENCY):
        return None
    ticks = sum(value for name, value in values.items() if name.startswith(_COLLECTOR) and name.endswith(".time"))
    return ticks / values[_FREQUENCY]


def counters(pid: int) -> dict[str, int]:
    """Return the integer counters of a JVM of this user by name; empty if there is no such JVM."""
    try:
        with os.scandir(_FOLDER) as entries:
            folders = [entry.path for entry in entries if entry.name.startswith("hsperfdata_")]
        files = [
            file
            for folder in folders
            if (file := Path(folder, str(pid))).is_file() and file.stat().st_uid == os.getuid()
        ]
        return dict(_longs(files[0].read_bytes())) if files and files[0].stat().st_size <= _MAX_FILE_BYTES else {}
    except (OSError, struct.error, ValueError):  # gone meanwhile, or not a file of a JVM
        return {}


def _longs(content: bytes) -> Iterator[tuple[str, int]]:
    magic, order, major, _, _, _, _, _, position, count = _PROLOGUE.unpack_from(content)
    if (magic, order, major) != (_MAGIC, _LITTLE_ENDIAN, _MAJOR_VERSION):
        return
    for _ in range(count):
        length, name_at, vector, kind, _, _, _, data_at = _ENTRY.unpack_from(content, position)
        if kind == _LONG and vector == 0:
            end = content.index(b"\0", position + name_at)
            name = content[position + name_at : end].decode("ascii")
            yield name, struct.unpack_from("<q", content, position + data_at)[0]
        position += length
