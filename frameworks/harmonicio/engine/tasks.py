"""The background tasks of a master or a worker, which would go unnoticed if one of them ended."""

import asyncio
import logging
import signal

logger = logging.getLogger(__name__)


def end_process_on_error(task: "asyncio.Task[None]") -> None:
    """End this process if a task failed, so that its supervisor restarts it.

    A master or a worker without one of its tasks would go unnoticed. What a limit of the process causes is one line.
    """
    if task.cancelled() or (error := task.exception()) is None:
        return
    limited = isinstance(error, MemoryError | OSError) or "start new thread" in str(error)
    logger.error("this process ends: %r", error, exc_info=None if limited else error)
    signal.raise_signal(signal.SIGTERM)
