"""Files of one record a line, which grow while a run goes on: what was appended is on the disk, and outlives a kill."""

import os
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from bench.errors import UsageError
from bench.storage.checksums import sync_folder

RecordT = TypeVar("RecordT", bound=Struct)


def append_line(path: Path, line: bytes) -> None:
    """Append a line, given without its end; it is on the disk when this returns. Raises OSError."""
    begun = path.exists()
    with path.open("ab") as file:
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())
    if not begun:
        sync_folder(path.parent)


def cut_partial_line(path: Path) -> None:
    """Remove the last line if a killed harness has written only a part of it."""
    if not path.exists():
        return
    content = path.read_bytes()
    complete = content.rfind(b"\n") + 1
    if complete != len(content):
        with path.open("r+b") as file:
            file.truncate(complete)


def read_lines(path: Path, kind: type[RecordT]) -> list[RecordT]:
    """Return the records of a file, of one that is missing none; a last line without an end is left out.

    Raises:
        UsageError: A line is no such record.
    """
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    decoder, found = msgspec.json.Decoder(kind), list[RecordT]()
    for number, line in enumerate(lines, 1):
        try:
            found.append(decoder.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise UsageError(f"{path}:{number}: cannot be read ({problem}); the run was damaged, repeat it") from None
    return found
