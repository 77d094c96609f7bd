"""What is committed is acknowledged; a master whose commits have ended ends, too."""

import asyncio
import signal
import time

import pytest

from frameworks.harmonicio.engine.master.group_commit import GroupCommit


class Journal:
    """A journal whose commits end as told."""

    def __init__(self, *errors):
        self._errors = list(errors)

    def commit(self):
        if self._errors:
            raise self._errors.pop(0)


@pytest.fixture
def terminated():
    """Return the times at which this process was told to end."""
    times = []
    before = signal.signal(signal.SIGTERM, lambda *_: times.append(time.monotonic()))
    yield times
    signal.signal(signal.SIGTERM, before)


def commit(journal, terminated):
    """Commit two items; return those on the disk, and those that are not."""
    done, failed = [], []

    async def add():
        commits = GroupCommit(
            journal,
            on_commit=lambda items, _: done.extend(items),
            on_failure=lambda items, _: failed.extend(items),
        )
        commits.add("a")
        commits.add("b")
        deadline = time.monotonic() + 30
        while not done and not terminated and time.monotonic() < deadline:
            await asyncio.sleep(0.01)

    asyncio.run(add())
    return done, failed


def test_items_are_on_the_disk(terminated):
    """Both by one commit."""
    assert commit(Journal(), terminated) == (["a", "b"], [])
    assert not terminated


def test_a_full_disk_is_told_and_the_commits_go_on(terminated):
    """The connectors send again what was not acknowledged."""
    assert commit(Journal(OSError("No space left on device")), terminated)[1] == ["a", "b"]
    assert not terminated


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError(), ValueError("a defect")])
def test_a_master_that_can_commit_no_more_ends(error, terminated, caplog):
    """Its supervisor starts another one; the campaign found one that went on, and acknowledged nothing."""
    assert commit(Journal(error), terminated) == ([], [])
    assert len(terminated) == 1
    (record,) = [record for record in caplog.records if record.message.startswith("this process ends")]
    assert bool(record.exc_info) == isinstance(error, ValueError)
