"""Group commit: frames that arrive while the disk is busy are committed together."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from frameworks.harmonicio.engine.master.credit_policy import PAUSE_S
from frameworks.harmonicio.engine.master.journal import Journal
from frameworks.harmonicio.engine.tasks import end_process_on_error

logger = logging.getLogger(__name__)

Item = TypeVar("Item")


class GroupCommit(Generic[Item]):
    """Commits the journal for the items that were added, all of a moment together.

    Args:
        journal: None when nothing has to be on the disk.
        on_commit: called with items that are on the disk, and the monotonic time at which their commit began.
        on_failure: called with items that are not, and the error.
    """

    def __init__(
        self,
        journal: Journal | None,
        *,
        on_commit: Callable[[list[Item], float], None],
        on_failure: Callable[[list[Item], OSError], None],
    ) -> None:
        self._journal, self._on_commit, self._on_failure = journal, on_commit, on_failure
        self._waiting: list[Item] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, item: Item) -> None:
        """Add an item whose data was appended to the journal; to be called within a running loop."""
        self._waiting.append(item)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(end_process_on_error)  # the items are not acknowledged, and sent again

    async def _run(self) -> None:
        """Commit until no item waits."""
        try:
            while self._waiting:
                items, self._waiting = self._waiting, []
                await self._commit(items)
        finally:
            self._task = None

    async def _commit(self, items: list[Item]) -> None:
        began = time.monotonic()
        if self._journal is not None:
            try:
                await asyncio.get_running_loop().run_in_executor(None, self._journal.commit)
            except OSError as error:
                logger.error("nothing is acknowledged: %s", error)  # noqa: TRY400  one line is enough
                self._on_failure(items, error)
                await asyncio.sleep(PAUSE_S)
        self._on_commit(items, began)
