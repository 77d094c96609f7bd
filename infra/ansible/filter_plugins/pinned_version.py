"""Ansible filter that returns the version of a program that this checkout installs."""

import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PINS = {
    "kafka": ("bench/services/jars.lock", r"^ +org\.apache\.kafka:kafka_2\.13:([^:\s]+):"),
    "pulsar": ("bench/services/jars.lock", r"^ +org\.apache\.pulsar:pulsar-broker:([^:\s]+):"),
    "flink": ("frameworks/flink/requirements.lock", r"^apache-flink==(\S+) "),
    "spark": ("constraints.txt", r"^pyspark==(\S+)$"),
    "stream-bench": ("pyproject.toml", r'^version = "([^"]+)"$'),
}
"""For each program the file that pins it, and the line there."""


class FilterModule:
    """The filter of this file, as Ansible loads it."""

    def filters(self) -> dict[str, Callable[[str], str]]:
        """Return the filter by its name in templates."""
        return {"pinned_version": pinned_version}


def pinned_version(program: str) -> str:
    """Return the version of a program, as its file pins it.

    Raises:
        ValueError: the program is unknown, or its file does not pin it.
    """
    if program not in PINS:
        raise ValueError(f"{program!r} has no pinned version; allowed: {', '.join(PINS)}")
    file, pattern = PINS[program]
    match = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise ValueError(f"{file} does not pin {program}")
    return match[1]
