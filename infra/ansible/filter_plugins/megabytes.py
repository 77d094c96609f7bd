"""Ansible filter that reads a size of memory as the JVM and Spark write it."""

import re
from collections.abc import Callable

UNITS = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2}


class FilterModule:
    """The filter of this file, as Ansible loads it."""

    def filters(self) -> dict[str, Callable[[str], int]]:
        """Return the filter by its name in templates."""
        return {"megabytes": megabytes}


def megabytes(text: str) -> int:
    """Return the MiB in a size such as 512m or 2g, rounded down.

    Raises:
        ValueError: the text is not a whole number with one of the units k, m, g, t.
    """
    match = re.fullmatch(r"(\d+)([kmgt])b?", str(text).strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not a size of memory; allowed: a whole number with k, m, g or t, such as 512m")
    return int(int(match[1]) * UNITS[match[2]])
