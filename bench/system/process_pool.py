"""Pure work spread over processes: the answers come as they are ready, and no worker outlives whoever asked."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from threading import Thread
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def answers(work: Callable[[Item], Answer], items: Sequence[Item], jobs: int) -> Iterator[tuple[Item, Answer]]:
    """(item, work(item)) for every item, in the order in which they are ready; `work` and items must be picklable.

    With one job everything is done in this process. What `work` raises is raised here, and the rest is given up.
    """
    if jobs == 1:
        yield from ((item, work(item)) for item in items)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads of a live display half
    pool = ProcessPoolExecutor(jobs, context, _prepare)
    try:
        futures = {pool.submit(work, item): item for item in items}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _prepare() -> None:
    """A worker leaves Ctrl-C to its parent and ends when the parent is gone, however that came."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
