"""Structured logs: one JSON object a line on standard error."""

import json
import logging
import sys
import time


class _Lines(logging.Formatter):
    """One object a record."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "role": self._role,
            "logger": record.name.rpartition(".")[2],
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said)


def log_to_stderr(role: str, level: int = logging.INFO) -> None:
    """Have everything from `level` on logged, as the given role."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(role))
    logging.basicConfig(level=level, handlers=[handler], force=True)
