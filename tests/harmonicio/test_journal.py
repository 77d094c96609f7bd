"""What the master's journal says is found again after a restart, as long as it is needed, and no longer."""

import contextlib
import resource

import pytest
from queues import contents, put

from frameworks.harmonicio.master.backlog import Backlog, Bounds
from frameworks.harmonicio.wire.frame import HEADER_BYTES


def test_a_new_queue_finds_what_waited_and_what_was_out(journal):
    """What was done does not come again."""
    backlog = Backlog(Bounds(), journal())
    for number in range(4):
        put(backlog, number, [b"message %d" % number])
    done, _ = backlog.take("s"), backlog.take("s")
    backlog.done("s", done.key)
    found = Backlog(Bounds(), journal())
    assert found.lengths() == {"s": 3}
    assert not put(found, 2, [b"message 2"])
    assert contents(found) == [b"message 1", b"message 2", b"message 3"]
    assert Backlog(Bounds(), journal()).messages == 0


@pytest.mark.parametrize("cut", [1, 10, HEADER_BYTES + 1, 60])
def test_a_torn_record_ends_a_journal(journal, tmp_path, cut):
    """What is before it is found."""
    backlog = Backlog(Bounds(), journal())
    put(backlog, 0, [b"first message"])
    put(backlog, 1, [b"second message"])
    (segment,) = (tmp_path / "journal").glob("*.journal")
    segment.write_bytes(segment.read_bytes()[:-cut])
    found = Backlog(Bounds(), journal())
    assert contents(found) == [b"first message"]
    put(found, 5, [b"third"])
    assert contents(Backlog(Bounds(), journal())) == [b"third"]


def test_segments_that_nobody_needs_are_deleted(journal, tmp_path):
    """The disk does not fill with what is done."""
    backlog = Backlog(Bounds(), journal(segment_bytes=100))
    for number in range(20):
        put(backlog, number, [b"x" * 50])
    assert len(list((tmp_path / "journal").glob("*.journal"))) > 5
    contents(backlog)
    assert len(list((tmp_path / "journal").glob("*.journal"))) <= 2


def segments(tmp_path):
    """How many files the journal has."""
    return len(list((tmp_path / "journal").glob("*.journal")))


def test_a_segment_of_which_something_was_done_keeps_what_still_waits_in_it(journal, tmp_path):
    """Though what was done came first, and there are newer segments: neither is it lost, nor is the next start in danger."""
    backlog = Backlog(Bounds(), journal(segment_bytes=300))
    put(backlog, 0, [b"x" * 50])
    backlog.done("s", backlog.take("s").key)
    for number in range(1, 6):
        put(backlog, number, [b"message %d" % number + b"x" * 50])
    assert segments(tmp_path) > 1
    for _ in range(3):
        found = Backlog(Bounds(), journal())
        assert found.lengths() == {"s": 5}
    assert [message[:9] for message in contents(found)] == [b"message %d" % number for number in range(1, 6)]
    assert Backlog(Bounds(), journal()).messages == 0
    assert segments(tmp_path) == 1  # the newest


@contextlib.contextmanager
def full(most_bytes):
    """No file grows beyond that: what goes beyond it is written in part, and then refused, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_a_full_disk_took_in_part_is_cut_off(journal, tmp_path):
    """What is appended once there is room again is found behind what was there before, in the same segment."""
    backlog = Backlog(Bounds(), journal())
    put(backlog, 0, [b"first"])
    with full(120):
        for _ in range(3):
            with pytest.raises(OSError, match="too large"):
                put(backlog, 1, [b"second" + b"x" * 100])
    put(backlog, 1, [b"second"])
    assert segments(tmp_path) == 1
    assert contents(Backlog(Bounds(), journal())) == [b"first", b"second"]


def test_what_is_done_is_free_also_when_a_full_disk_does_not_take_that(journal, tmp_path):
    """It may come again after a restart if its segment is still there; those that are not needed go."""
    backlog = Backlog(Bounds(), journal(segment_bytes=100))
    for number in range(5):
        put(backlog, number, [b"x" * 100])
    with full(0):
        assert len(contents(backlog)) == 5
    assert (backlog.messages, segments(tmp_path)) == (0, 1)
