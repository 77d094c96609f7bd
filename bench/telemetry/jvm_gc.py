"""What Java virtual machines say of themselves: the counters that each keeps in a file for jstat (hsperfdata, version 2)."""

import os
import struct
from collections.abc import Iterator
from pathlib import Path

_MAGIC = b"\xca\xfe\xc0\xc0"
_PROLOGUE, _ENTRY = struct.Struct("<4sBBBBiiqii"), struct.Struct("<iiiBBBBi")
_LITTLE, _MAJOR, _LONG = 1, 2, ord("J")
_FOLDER = "/tmp"  # noqa: S108  where every JVM on Linux writes it, whatever TMPDIR says
_LARGEST = 2**20
"""Bytes of such a file; as shipped it has 32 kB."""
_FREQUENCY, _COLLECTOR = "sun.os.hrt.frequency", "sun.gc.collector."


def gc_seconds(pid: int) -> float | None:
    """For how long a JVM's program has stood still for its collectors since it began; None for what is no JVM or tells nothing."""
    found = counters(pid)
    if not found.get(_FREQUENCY):
        return None
    ticks = sum(value for name, value in found.items() if name.startswith(_COLLECTOR) and name.endswith(".time"))
    return ticks / found[_FREQUENCY]


def counters(pid: int) -> dict[str, int]:
    """The whole-number counters of a JVM of this person; none where there is no such JVM."""
    try:
        with os.scandir(_FOLDER) as entries:
            folders = [entry.path for entry in entries if entry.name.startswith("hsperfdata_")]
        files = [
            file
            for folder in folders
            if (file := Path(folder, str(pid))).is_file() and file.stat().st_uid == os.getuid()
        ]
        return dict(_longs(files[0].read_bytes())) if files and files[0].stat().st_size <= _LARGEST else {}
    except (OSError, struct.error, ValueError):  # gone meanwhile, or not what it seems
        return {}


def _longs(content: bytes) -> Iterator[tuple[str, int]]:
    magic, order, major, _, _, _, _, _, place, count = _PROLOGUE.unpack_from(content)
    if (magic, order, major) != (_MAGIC, _LITTLE, _MAJOR):
        return
    for _ in range(count):
        length, name_at, vector, kind, _, _, _, data_at = _ENTRY.unpack_from(content, place)
        if kind == _LONG and vector == 0:
            end = content.index(b"\0", place + name_at)
            yield content[place + name_at : end].decode("ascii"), struct.unpack_from("<q", content, place + data_at)[0]
        place += length
