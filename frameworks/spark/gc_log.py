"""The pauses of the driver's JVM for garbage collection, from its own log, and what they make of spans.

The JVM writes a line at the end of each pause, with System.nanoTime, which is CLOCK_MONOTONIC on Linux.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from bench.model.trace import Activity, Span

FILE = "gc.log"
"""In the working directory of the driver."""
OPTION = f"-Xlog:gc:file={FILE}:timenanos:filecount=0"
Pause = tuple[int, int]
"""Begin and end in nanoseconds of CLOCK_MONOTONIC."""
_PAUSE = re.compile(r"\[(\d+)ns\] GC\(\d+\) Pause .* ([\d.]+)ms$")


class GcLog:
    """The log from now on; without a file it has no pauses."""

    def __init__(self, path: Path = Path(FILE)) -> None:
        self._path, self._rest = path, ""
        self._at = path.stat().st_size if path.exists() else 0

    def read(self) -> list[Pause]:
        """Return the pauses that have ended since the last call."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._at)
            new = file.read()
        self._at += len(new)
        *lines, self._rest = (self._rest + new.decode("ascii", "replace")).split("\n")
        return [pause for pause in map(_read_pause, lines) if pause is not None]


def split_spans(spans: Sequence[Span], pauses: Sequence[Pause], activities: Collection[Activity]) -> list[Span]:
    """Return spans of which the parts within a pause are `gc`, where their activity is one of the JVM."""
    return [part for span in spans for part in (_split(span, pauses) if span.activity in activities else (span,))]


def _split(span: Span, pauses: Sequence[Pause]) -> Iterator[Span]:
    """Yield the parts of a span, in their order; the first one has its messages."""
    at, messages = span.begin, span.messages
    for begin, end in sorted(pauses):
        first, last = max(begin, at), min(end, span.end)
        if first >= last:
            continue
        if first > at:
            yield replace(span, begin=at, end=first, messages=messages)
            messages = 0
        yield replace(span, activity="gc", begin=first, end=last, messages=messages)
        at, messages = last, 0
    if at < span.end or at == span.begin:
        yield replace(span, begin=at, messages=messages)


def _read_pause(line: str) -> Pause | None:
    found = _PAUSE.match(line.strip())
    if found is None:
        return None
    end = int(found[1])
    return end - round(float(found[2]) * 1e6), end
