"""What is committed is acknowledged; a master whose commits have ended ends, too."""

import asyncio
import time

import pytest

from frameworks.harmonicio.engine.master.group_commit import GroupCommit


class StubJournal:
    """A journal whose commits end as told."""

    def __init__(self, *errors):
        self._errors, self.commits = list(errors), 0

    def commit(self):
        self.commits += 1
        if self._errors:
            raise self._errors.pop(0)


def commit(journal):
    """Commit two items; return those on the disk, those that are not, and the exit code of a process that ended."""
    done, failed, code = [], [], None

    async def add():
        commits = GroupCommit(
            journal,
            on_commit=lambda items, _: done.extend(items),
            on_failure=lambda items, _: failed.extend(items),
        )
        commits.add("a")
        commits.add("b")
        deadline = time.monotonic() + 30
        while not done and time.monotonic() < deadline:
            await asyncio.sleep(0.01)

    try:
        asyncio.run(add())
    except SystemExit as ended:
        code = ended.code
    return done, failed, code


def test_items_are_on_the_disk():
    """Both by one commit."""
    journal = StubJournal()
    assert commit(journal) == (["a", "b"], [], None)
    assert journal.commits == 1


def test_a_full_disk_is_told_and_the_commits_go_on():
    """The connectors send again what was not acknowledged."""
    _, failed, code = commit(StubJournal(OSError("No space left on device")))
    assert (failed, code) == (["a", "b"], None)


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError(), ValueError("a defect")])
def test_a_master_that_can_commit_no_more_ends(error, caplog):
    """The campaign found one that went on, and acknowledged nothing; a defect is told with its traceback."""
    assert commit(StubJournal(error)) == ([], [], 3)
    (record,) = [record for record in caplog.records if record.message.startswith("this process ends")]
    assert bool(record.exc_info) == isinstance(error, ValueError)
