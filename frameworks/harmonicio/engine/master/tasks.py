"""The end of the master's process when one of its background tasks fails."""

import asyncio
import logging
import signal

logger = logging.getLogger(__name__)


def end_process_on_error(task: "asyncio.Task[None]") -> None:
    """End this process if a task failed, so that its supervisor restarts it.

    A master without one of its tasks would go unnoticed.
    """
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("the master ends: %r", error, exc_info=error)
        signal.raise_signal(signal.SIGTERM)
