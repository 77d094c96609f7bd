"""Pure work spread over worker processes: results arrive as they are ready, and no worker outlives its parent."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from threading import Thread
from typing import TypeVar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def map_unordered(
    work: Callable[[ItemT], ResultT], items: Sequence[ItemT], jobs: int
) -> Iterator[tuple[ItemT, ResultT]]:
    """Yield (item, work(item)) for every item, in the order of completion.

    Args:
        work: A picklable function; its exceptions are raised here, and the remaining items are cancelled.
        items: Picklable arguments.
        jobs: Number of processes; with one, everything runs in this process.
    """
    if jobs == 1:
        yield from ((item, work(item)) for item in items)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of a live display's threads
    pool = ProcessPoolExecutor(jobs, context, _prepare)
    try:
        futures = {pool.submit(work, item): item for item in items}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _prepare() -> None:
    """Make a worker ignore Ctrl-C, which its parent handles, and end when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
