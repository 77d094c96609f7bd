"""Files that are replaced in one step."""

import os
from pathlib import Path

from bench.storage.checksums import sync_folder


def replace_file(path: Path, content: bytes, *, synced: bool = False) -> None:
    """Replace a file in one step: a reader gets the old or the new content.

    Args:
        path: The file, which need not exist.
        content: Its new content.
        synced: Whether it is on the disk when this returns, so that the same holds after a crash of the machine.
    """
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        if synced:
            file.flush()
            os.fsync(file.fileno())
    part.replace(path)
    if synced:
        sync_folder(path.parent)
