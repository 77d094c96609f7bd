"""Structured logs on standard error: one JSON object per line, and few warnings of the same kind at a time."""

import errno
import json
import logging
import math
import sys
import time
from collections import Counter
from typing import TextIO

MAX_LINES, PERIOD_S = 20, 10.0
"""Warnings and errors of one kind that are logged in a period; the others are counted."""
MAX_KINDS = 1000
EXHAUSTED = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN, errno.ENOSPC))
Kind = tuple[str, str]
"""Name of a logger, and a message before its arguments are put in."""


def is_exhausted(error: BaseException) -> bool:
    """Return whether an error says that a limit of the process or of the machine is reached.

    Where such an error was met says nothing, and asyncio logs each one.
    """
    if isinstance(error, OSError):
        return error.errno in EXHAUSTED
    return isinstance(error, MemoryError) or "can't start new thread" in str(error)


class LineLimits:
    """Limits the lines of each kind in a period; pure, every call gets the time in monotonic seconds."""

    def __init__(self, max_lines: int = MAX_LINES, period_s: float = PERIOD_S) -> None:
        self._max_lines, self._period_s = max_lines, period_s
        self._seen: Counter[Kind] = Counter()
        self._until = 0.0

    def admit(self, kind: Kind, now: float) -> bool:
        """Count a line; return whether it is logged. Call `end_period` before."""
        if not self._seen:
            self._until = now + self._period_s
        if kind not in self._seen and len(self._seen) >= MAX_KINDS:
            kind = ("", "other messages")
        self._seen[kind] += 1
        return self._seen[kind] <= self._max_lines

    def end_period(self, now: float) -> list[tuple[Kind, int]]:
        """Return how many lines of each kind were left out, once the period is over, and begin another one."""
        if now < self._until:
            return []
        left_out = [(kind, count - self._max_lines) for kind, count in self._seen.items() if count > self._max_lines]
        self._seen.clear()
        return left_out


class _LimitedHandler(logging.StreamHandler[TextIO]):
    """Writes records, and says how many were left out when the period is over, or at the end."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._limits = LineLimits()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record unless there were too many of its kind."""
        now = time.monotonic()
        self._report_left_out(now)
        if record.levelno < logging.WARNING or self._limits.admit((record.name, str(record.msg)), now):
            super().emit(record)

    def close(self) -> None:
        """Say what was left out last."""
        self._report_left_out(math.inf)
        super().close()

    def _report_left_out(self, now: float) -> None:
        for (name, message), count in self._limits.end_period(now):
            text = f"{count} more lines were left out: {message}"
            super().emit(logging.LogRecord(name, logging.WARNING, __file__, 0, text, None, None))


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "role": self._role,
            "logger": record.name.rpartition(".")[2],
            "message": record.getMessage(),
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and is_exhausted(error):
            entry["message"] += f": {error}" if str(error) else f": {error!r}"
        elif record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def log_to_stderr(role: str, level: int = logging.INFO) -> None:
    """Log everything from `level` on to standard error; `role` is in every record."""
    handler = _LimitedHandler()
    handler.setFormatter(JsonFormatter(role))
    logging.basicConfig(level=level, handlers=[handler], force=True)
