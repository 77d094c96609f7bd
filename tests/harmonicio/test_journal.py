"""What the master's journal says is found again after a restart, as long as it is needed, and no longer."""

import pytest
from queues import contents, full, put

from frameworks.harmonicio.engine.master.journal import Journal
from frameworks.harmonicio.engine.master.queue import MessageQueue, QueueLimits
from frameworks.harmonicio.engine.wire.frame import HEADER_BYTES


def test_a_new_queue_finds_what_waited_and_what_was_out(journal):
    """What was done does not come again."""
    queue = MessageQueue(QueueLimits(), journal())
    for number in range(4):
        put(queue, number, [b"message %d" % number])
    done, _ = queue.take("s"), queue.take("s")
    queue.done("s", done.key)
    found = MessageQueue(QueueLimits(), journal())
    assert found.lengths() == {"s": 3}
    assert not put(found, 2, [b"message 2"])
    assert contents(found) == [b"message 1", b"message 2", b"message 3"]
    assert MessageQueue(QueueLimits(), journal()).messages == 0


@pytest.mark.parametrize("cut", [1, 10, HEADER_BYTES + 1, 60])
def test_a_torn_record_ends_a_journal(journal, tmp_path, cut):
    """What is before it is found."""
    queue = MessageQueue(QueueLimits(), journal())
    put(queue, 0, [b"first message"])
    put(queue, 1, [b"second message"])
    (segment,) = (tmp_path / "journal").glob("*.journal")
    segment.write_bytes(segment.read_bytes()[:-cut])
    found = MessageQueue(QueueLimits(), journal())
    assert contents(found) == [b"first message"]
    put(found, 5, [b"third"])
    assert contents(MessageQueue(QueueLimits(), journal())) == [b"third"]


def test_segments_that_nobody_needs_are_deleted(journal, tmp_path):
    """The disk does not fill with what is done."""
    queue = MessageQueue(QueueLimits(), journal(segment_bytes=100))
    for number in range(20):
        put(queue, number, [b"x" * 50])
    assert len(list((tmp_path / "journal").glob("*.journal"))) > 5
    contents(queue)
    assert len(list((tmp_path / "journal").glob("*.journal"))) <= 2


def segments(tmp_path):
    """How many files the journal has."""
    return len(list((tmp_path / "journal").glob("*.journal")))


def test_a_segment_of_which_something_was_done_keeps_what_still_waits_in_it(journal, tmp_path):
    """Though what was done came first, and there are newer segments: neither is it lost, nor is the next start in danger."""
    queue = MessageQueue(QueueLimits(), journal(segment_bytes=300))
    put(queue, 0, [b"x" * 50])
    queue.done("s", queue.take("s").key)
    for number in range(1, 6):
        put(queue, number, [b"message %d" % number + b"x" * 50])
    assert segments(tmp_path) > 1
    for _ in range(3):
        found = MessageQueue(QueueLimits(), journal())
        assert found.lengths() == {"s": 5}
    assert [message[:9] for message in contents(found)] == [b"message %d" % number for number in range(1, 6)]
    assert MessageQueue(QueueLimits(), journal()).messages == 0
    assert segments(tmp_path) == 1  # the newest


def test_what_a_full_disk_took_in_part_is_cut_off(journal, tmp_path):
    """What is appended once there is room again is found behind what was there before, in the same segment."""
    queue = MessageQueue(QueueLimits(), journal())
    put(queue, 0, [b"first"])
    with full(120):
        for _ in range(3):
            with pytest.raises(OSError, match="too large"):
                put(queue, 1, [b"second" + b"x" * 100])
    put(queue, 1, [b"second"])
    assert segments(tmp_path) == 1
    assert contents(MessageQueue(QueueLimits(), journal())) == [b"first", b"second"]


def test_what_is_done_is_free_also_when_a_full_disk_does_not_take_that(journal, tmp_path):
    """It may come again after a restart if its segment is still there; those that are not needed go."""
    queue = MessageQueue(QueueLimits(), journal(segment_bytes=100))
    for number in range(5):
        put(queue, number, [b"x" * 100])
    with full(0):
        assert len(contents(queue)) == 5
    assert (queue.messages, segments(tmp_path)) == (0, 1)


@pytest.mark.parametrize("options", [{}, {"durable": False}], ids=["journal", "spill"])
def test_a_message_that_waits_for_long_does_not_keep_what_came_after_it(journal, tmp_path, options):
    """It is moved on, whether it waits or is out, as often as that takes; nobody else is."""
    queue = MessageQueue(QueueLimits(memory_bytes=0), journal(segment_bytes=1000, **options))
    for number, stream in enumerate(("waits", "out")):
        put(queue, number, [b"long" + b"x" * 50], stream)
    out = queue.take("out")
    for number in range(2, 1000):
        put(queue, number, [b"x" * 100])
        queue.done("s", queue.take("s").key)
        assert segments(tmp_path) <= 6
    assert queue.data(out)[HEADER_BYTES:][:4] == b"long"
    if not options:
        assert MessageQueue(QueueLimits(), journal()).lengths() == {"waits": 1, "out": 1}
    queue.put_back("out", out.key)
    assert [len(contents(queue, stream)) for stream in ("waits", "out")] == [1, 1]
    assert (queue.messages, segments(tmp_path)) == (0, 1)


def test_what_is_done_in_its_order_is_never_moved(journal, monkeypatch):
    """However small the messages are, and however many wait."""
    monkeypatch.setattr(Journal, "move", None)
    queue = MessageQueue(QueueLimits(), journal(segment_bytes=1000))
    for number in range(2000):
        put(queue, number, [b"x"], "a stream with a name")
        if number > 200:
            queue.done("a stream with a name", queue.take("a stream with a name").key)
    assert queue.messages == 201


def test_a_restart_in_the_middle_of_a_move_finds_a_message_once(journal, tmp_path):
    """It is there twice, until its segment is deleted."""
    queue = MessageQueue(QueueLimits(), journal(segment_bytes=100))
    for number in range(3):
        put(queue, number, [b"message %d" % number + b"x" * 100])
    first = (tmp_path / "journal" / "00000001.journal").read_bytes()
    entry = queue.peek("s")
    entry.location = queue._journal.move("s", entry.location)
    (tmp_path / "journal" / "00000001.journal").write_bytes(first)
    for _ in range(2):
        found = MessageQueue(QueueLimits(), journal())
        assert found.lengths() == {"s": 3}
    assert sorted(message[:9] for message in contents(found)) == [b"message 0", b"message 1", b"message 2"]
    assert MessageQueue(QueueLimits(), journal()).messages == 0


def test_a_damaged_frame_is_not_moved(journal, tmp_path, caplog):
    """It would end the segment in which it came to lie, and what is behind it would be lost."""
    queue = MessageQueue(QueueLimits(), journal(segment_bytes=1000))
    put(queue, 0, [b"x" * 100], "waits")
    segment = tmp_path / "journal" / "00000001.journal"
    segment.write_bytes(segment.read_bytes()[:-1] + b"y")
    for number in range(1, 50):
        put(queue, number, [b"x" * 100])
        queue.done("s", queue.take("s").key)
    put(queue, 50, [b"behind"])
    assert "00000001.journal is damaged" in caplog.text
    assert MessageQueue(QueueLimits(), journal()).lengths() == {"s": 1}
