"""What a master's log says of every second: the queue, the leases, each PE and each worker, as one long table."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from frameworks.harmonicio.engine.errors import ConfigError

PREFIX = "sample "
HEAD = ("time", "series", "name", "value")


def text_of(sample: dict[str, Any]) -> str:
    """The message under which a sample is logged."""
    return PREFIX + json.dumps(sample)


def rows(log: Path) -> Iterator[tuple[str, str, str, object]]:
    """(UTC time, series, of what, value), in the order of the log; raises ConfigError when it cannot be read.

    Series: queued (of a stream), leases, state, processed and waiting (of a PE), cpu and pes (of a worker).
    """
    try:
        with log.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if PREFIX in line:
                    yield from _rows(line)
    except OSError as problem:
        raise ConfigError(f"{log} cannot be read: {problem.strerror}") from None


def _rows(line: str) -> Iterator[tuple[str, str, str, object]]:
    try:
        said = json.loads(line)
        time, text = said["time"], said["message"]
        sample = json.loads(text.removeprefix(PREFIX)) if text.startswith(PREFIX) else {}
        yield from ((time, "queued", stream, count) for stream, count in sample.get("queued", {}).items())
        if sample:
            yield time, "leases", "", sample["leases"]
        for pe, *values in sample.get("pes", ()):
            yield from (
                (time, series, pe, value)
                for series, value in zip(("state", "processed", "waiting"), values, strict=True)
            )
        for worker, *values in sample.get("workers", ()):
            yield from ((time, series, worker, value) for series, value in zip(("cpu", "pes"), values, strict=True))
    except (ValueError, KeyError, TypeError):
        return  # a line that is no sample, or the last one of a master that was killed
