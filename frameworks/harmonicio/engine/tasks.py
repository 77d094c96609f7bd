"""The background tasks of a master or a worker."""

import asyncio
import logging
import sys

from frameworks.harmonicio.engine.logs import is_exhausted

logger = logging.getLogger(__name__)

EXIT_CODE = 3
"""Of a process that ended because one of its tasks had."""


def end_process_on_error(task: "asyncio.Task[None]") -> None:
    """End this process if a task failed, after its usual clean-up; whoever started it sees its exit code.

    A master or a worker without one of its tasks would go unnoticed. What a limit of the process causes is one line.
    """
    if task.cancelled() or (error := task.exception()) is None:
        return
    logger.error("this process ends: %r", error, exc_info=None if is_exhausted(error) else error)
    sys.exit(EXIT_CODE)  # asyncio lets it pass
