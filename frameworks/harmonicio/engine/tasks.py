"""The background tasks of a master or a worker."""

import asyncio
import errno
import logging
import sys

logger = logging.getLogger(__name__)

EXIT_CODE = 3
"""Of a process that ended because one of its tasks had."""
_OF_LIMITS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC}


def end_process_on_error(task: "asyncio.Task[None]") -> None:
    """End this process if a task failed, after its usual clean-up; whoever started it sees its exit code.

    A master or a worker without one of its tasks would go unnoticed. What a limit of the process causes is one line.
    """
    if task.cancelled() or (error := task.exception()) is None:
        return
    limited = isinstance(error, MemoryError) or "start new thread" in str(error)
    limited |= isinstance(error, OSError) and error.errno in _OF_LIMITS
    logger.error("this process ends: %r", error, exc_info=None if limited else error)
    sys.exit(EXIT_CODE)  # asyncio lets it pass
