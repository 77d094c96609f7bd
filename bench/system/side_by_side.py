"""Tasks that run side by side, each in a thread of its own."""

import logging
import time
from collections.abc import Callable, Mapping
from threading import Thread

logger = logging.getLogger(__name__)


def run_side_by_side(tasks: Mapping[str, Callable[[], object]]) -> None:
    """Run all tasks at a time; return when each has ended. What one raises is logged and goes no farther.

    An interrupt of the caller does not end them: what they wait for must end then, as children of a supervisor do.

    Args:
        tasks: By name, for the log.
    """
    threads = [Thread(target=_run, args=task, name=task[0], daemon=True) for task in tasks.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _run(name: str, task: Callable[[], object]) -> None:
    began = time.monotonic()
    try:
        task()
    except Exception as problem:  # a thread has nobody to raise it to
        logger.warning("%s failed after %.1f s: %s", name, time.monotonic() - began, problem)
    else:
        logger.info("%s took %.1f s", name, time.monotonic() - began)
