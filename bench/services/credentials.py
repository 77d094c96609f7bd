"""Secrets and certificates in files that a site names."""

from pathlib import Path

from bench.errors import SiteError


def read_secret(path: str) -> str:
    """Return the first line of a file. Raises SiteError where it cannot be read or is empty."""
    lines = read_text(path).splitlines()
    if not lines or not lines[0].strip():
        raise SiteError(f"{path} is empty; its first line must be the secret")
    return lines[0].strip()


def read_text(path: str) -> str:
    """Return a whole file. Raises SiteError where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise SiteError(
            f"{path}, which the site file names, cannot be read: {getattr(problem, 'strerror', problem)}"
        ) from problem
