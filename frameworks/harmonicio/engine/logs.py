"""Structured logs on standard error: one JSON object per line."""

import json
import logging
import sys
import time


class _JsonFormatter(logging.Formatter):
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
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def log_to_stderr(role: str, level: int = logging.INFO) -> None:
    """Log everything from `level` on to standard error; `role` is in every record."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter(role))
    logging.basicConfig(level=level, handlers=[handler], force=True)
