"""A connector in a process of its own: it sends numbered messages, and writes down how far all are acknowledged.

python -m tests.campaign.sender PORT FIRST COUNT MARKS    # COUNT "steady": 1000 a second, until SIGTERM
"""

# ruff: noqa: T201  its parent reads why it ended
import itertools
import signal
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.errors import HarmonicError
from tests.harmonicio.processes import numbered

CHUNK = 2000
STEADY_CHUNK, STEADY_INTERVAL_S = 200, 0.2
TIMEOUT_S = 60.0
CREDIT_TIMEOUT_S = 0.1
"""Messages go to the queue soon, so that it has its share of them."""
MARK = struct.Struct("<Q")
"""A number below which everything was acknowledged."""


def main() -> None:
    """Send, with a mark after each chunk; exit code 3 if the cluster did not take it, 4 if a message failed."""
    port, first = map(int, sys.argv[1:3])
    if sys.argv[3] == "steady":
        ended: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
        parts = _steady_parts(ended)
    else:
        parts = _parts(first, int(sys.argv[3]))
    options = {"c_name": "s", "port": port, "credit_timeout": CREDIT_TIMEOUT_S}
    try:
        with Connector(timeout=TIMEOUT_S, **options) as connector, Path(sys.argv[4]).open("ab", buffering=0) as marks:
            for begin, end in parts:
                connector.send_many(numbered(begin, end - begin))
                connector.flush()
                if connector.feeder.failed:
                    sys.exit(4)
                marks.write(MARK.pack(end))
    except HarmonicError as error:
        print(error, file=sys.stderr)
        sys.exit(3)


def _parts(first: int, count: int) -> Iterator[tuple[int, int]]:
    for begin in range(first, first + count, CHUNK):
        yield begin, min(begin + CHUNK, first + count)


def _steady_parts(ended: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield parts from 0 on, each at its moment, until something is in `ended`."""
    began = time.monotonic()
    for number in itertools.count():
        time.sleep(max(began + number * STEADY_INTERVAL_S - time.monotonic(), 0))
        if ended:
            return
        yield number * STEADY_CHUNK, (number + 1) * STEADY_CHUNK


def read_mark(path: Path, first: int) -> int:
    """Return the number below which everything from `first` on was acknowledged."""
    content = path.read_bytes() if path.exists() else b""
    whole = len(content) // MARK.size * MARK.size
    return int(MARK.unpack_from(content, whole - MARK.size)[0]) if whole else first


if __name__ == "__main__":
    main()
