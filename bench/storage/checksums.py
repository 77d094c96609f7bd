"""Checksums of a trial's files, of the journal's lines and of the results: what is read is what was written.

A line of the journal, and cells.json, ends with the SHA-256 of everything before it. The text is compared, not the
record, so that a newer version of stream-bench with more fields can check it, too. The checksums find damage and edits;
they are no signature.
"""

import os
from collections.abc import Iterable, Mapping
from hashlib import file_digest, sha256
from pathlib import Path

TRIAL_FOLDERS = ("series", "latency", "traces")
"""The folders in a run folder that have files of trials."""
_SEPARATOR = b',"checksum":"'


def trial_files(folder: Path, trial: str) -> list[Path]:
    """Return the files of one trial in a run folder, such as series/TRIAL.parquet and latency/TRIAL-due.hgrm.

    Args:
        folder: The run folder.
        trial: Beginning of the files' names, common to all files of the trial and to no others.
    """
    beginnings = (f"{trial}.", f"{trial}-")
    there = [folder / name for name in TRIAL_FOLDERS if (folder / name).is_dir()]
    return sorted(
        parent / entry.name for parent in there for entry in os.scandir(parent) if entry.name.startswith(beginnings)
    )


def seal_files(folder: Path, paths: Iterable[Path]) -> dict[str, str]:
    """Write files to the disk, with their folders; return the SHA-256 of each by its path in the run folder."""
    paths = list(paths)
    checksums = {}
    for path in paths:
        with path.open("rb") as file:
            checksums[path.relative_to(folder).as_posix()] = file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
    for parent in sorted({path.parent for path in paths}):
        sync_folder(parent)
    return checksums


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def damaged_files(folder: Path, files: Mapping[str, str], within: str = "") -> dict[str, str]:
    """Return what is wrong with files, by their paths in the run folder; empty if they are as they were written.

    Args:
        folder: The run folder.
        files: The SHA-256 of each file by its path in the run folder.
        within: Only files whose paths begin with this are looked at.
    """
    found = {}
    for name, checksum in files.items():
        if name.startswith(within):
            problem = _file_problem(folder / name, checksum)
            if problem:
                found[name] = problem
    return found


def seal(content: bytes) -> bytes:
    """Return a JSON object with the SHA-256 of its text as its last member."""
    content = content.rstrip()[:-1].rstrip()
    return content + _SEPARATOR + sha256(content).hexdigest().encode() + b'"}'


def is_intact(content: bytes) -> bool | None:
    """Return whether a sealed JSON object is as it was written; None if it has no checksum, as in older runs."""
    content, separator, checksum = content.rpartition(_SEPARATOR)
    if not separator:
        return None
    return checksum == sha256(content).hexdigest().encode() + b'"}'


def _file_problem(path: Path, checksum: str) -> str:
    try:
        with path.open("rb") as file:
            changed = file_digest(file, "sha256").hexdigest() != checksum
    except FileNotFoundError:
        return "is missing"
    except OSError as problem:
        return f"cannot be read ({problem.strerror})"
    return "is not as it was measured: its checksum differs" if changed else ""
