"""The samples in a master's log, one each second: queue, leases, PEs and workers, as one long table."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from frameworks.harmonicio.engine.errors import ConfigError

PREFIX = "sample "
HEAD = ("time", "series", "name", "value")


def format_sample(sample: dict[str, Any]) -> str:
    """Return the log message of a sample."""
    return PREFIX + json.dumps(sample)


def read_rows(log: Path) -> Iterator[tuple[str, str, str, object]]:
    """Yield (UTC time, series, name, value) in the order of the log; raises ConfigError when it cannot be read.

    Series: queued (by stream), leases, state, processed and waiting (by PE), cpu and pes (by worker).
    """
    try:
        with log.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if PREFIX in line:
                    yield from _parse_line(line)
    except OSError as error:
        raise ConfigError(f"{log} cannot be read: {error.strerror}") from None


def _parse_line(line: str) -> Iterator[tuple[str, str, str, object]]:
    try:
        entry = json.loads(line)
        time, text = entry["time"], entry["message"]
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
        return  # not a sample, or the torn last line of a master that was killed
