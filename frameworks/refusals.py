"""Refusals of a port for reports: connections from elsewhere, which must not fill the log."""

import logging
import time
from threading import Lock

logger = logging.getLogger(__name__)

LOG_INTERVAL_S = 10.0
"""Between two lines about connections that were refused."""


class Refusals:
    """Lines of the log about connections that were refused: one each LOG_INTERVAL_S, with the number of the others."""

    def __init__(self) -> None:
        self._next, self._unsaid, self._lock = 0.0, 0, Lock()

    def add(self, why: str) -> None:
        """Count a refused connection; log it unless another one was logged a moment ago."""
        with self._lock:
            now = time.monotonic()
            if now < self._next:
                self._unsaid += 1
                return
            more = f" ({self._unsaid} others before it)" if self._unsaid else ""
            self._next, self._unsaid = now + LOG_INTERVAL_S, 0
        logger.warning("a connection was refused: %s%s", why, more)
