"""Damage to the files of a run folder: a line that was written in part, a byte that has changed."""

from pathlib import Path

JOURNALS = ("trials.jsonl", "visits.jsonl")


def tear_line(folder: Path, chance: float) -> str | None:
    """Append a part of the last line to a journal, as a harness that is killed while it writes leaves it.

    Args:
        folder: The run folder.
        chance: From 0 to 1; chooses the journal and the length.

    Returns:
        The name of the file; None if there is no line yet.
    """
    there = [folder / name for name in JOURNALS if (folder / name).exists()]
    if not there:
        return None
    path = there[int(chance * len(there)) % len(there)]
    lines = path.read_bytes().splitlines()
    if not lines:
        return None
    part = lines[-1][: 1 + int(chance * (len(lines[-1]) - 1))]
    with path.open("ab") as file:
        file.write(part)
    return path.name


def edit_byte(folder: Path, chance: float) -> tuple[str, bytes] | None:
    """Change a bit of a file that `bench verify` vouches for.

    Args:
        folder: The run folder.
        chance: From 0 to 1; chooses the file, the byte and the bit.

    Returns:
        The path within the run folder, and the content before; None if there is no such file yet.
    """
    names = ["trials.jsonl", "cells.json", "series/*", "latency/*"]
    files = sorted(path for name in names for path in folder.glob(name) if path.stat().st_size)
    if not files:
        return None
    path = files[int(chance * len(files)) % len(files)]
    content = path.read_bytes()
    place = int(chance * 8 * len(content) * 7919) % (
        8 * len(content)
    )  # of a bit; a prime, so that it is not the file's
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    path.write_bytes(changed)
    return path.relative_to(folder).as_posix(), content
