"""The master's journal restores what is not done after a restart, and keeps nothing longer than needed."""

import subprocess
import sys

import pytest
from queues import contents, full, put

from frameworks.harmonicio.engine.master.queue import MessageQueue, QueueLimits
from frameworks.harmonicio.engine.wire.frame import HEADER_BYTES


def test_a_new_queue_restores_waiting_and_unacknowledged_frames(journal):
    """Frames that were done are not restored."""
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


@pytest.mark.parametrize("durable", [True, False])
def test_another_process_does_not_get_the_folder_of_a_journal(journal, tmp_path, durable):
    """It would delete what is queued, or write between it."""
    put(MessageQueue(QueueLimits(memory_bytes=0), journal(durable=durable)), 0, [b"a"])
    code = f"""
from pathlib import Path
from frameworks.harmonicio.engine.master.journal import Journal
Journal(Path({str(tmp_path / "journal")!r}), durable={durable})
"""
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert f"another master uses {tmp_path / 'journal'}" in other.stderr
    assert len(list((tmp_path / "journal").glob("*.journal"))) == 1


@pytest.mark.parametrize("cut", [1, 10, HEADER_BYTES + 1, 60])
def test_a_torn_record_ends_a_journal(journal, tmp_path, cut):
    """The records before it are restored."""
    queue = MessageQueue(QueueLimits(), journal())
    put(queue, 0, [b"first message"])
    put(queue, 1, [b"second message"])
    (segment,) = (tmp_path / "journal").glob("*.journal")
    segment.write_bytes(segment.read_bytes()[:-cut])
    found = MessageQueue(QueueLimits(), journal())
    assert contents(found) == [b"first message"]
    put(found, 5, [b"third"])
    assert contents(MessageQueue(QueueLimits(), journal())) == [b"third"]


def test_segments_without_waiting_frames_are_deleted(journal, tmp_path):
    """The disk does not fill with frames that are done."""
    queue = MessageQueue(QueueLimits(), journal(segment_bytes=100))
    for number in range(20):
        put(queue, number, [b"x" * 50])
    assert len(list((tmp_path / "journal").glob("*.journal"))) > 5
    contents(queue)
    assert len(list((tmp_path / "journal").glob("*.journal"))) <= 2


def segments(tmp_path):
    """Return the number of files of the journal."""
    return len(list((tmp_path / "journal").glob("*.journal")))


def test_a_segment_keeps_its_waiting_frames_when_others_in_it_are_done(journal, tmp_path):
    """Later restarts restore them, too, although newer segments exist."""
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


def test_a_record_that_a_full_disk_took_in_part_is_truncated(journal, tmp_path):
    """Records that are appended once there is space again follow in the same segment."""
    queue = MessageQueue(QueueLimits(), journal())
    put(queue, 0, [b"first"])
    with full(120):
        for _ in range(3):
            with pytest.raises(OSError, match="too large"):
                put(queue, 1, [b"second" + b"x" * 100])
    put(queue, 1, [b"second"])
    assert segments(tmp_path) == 1
    assert contents(MessageQueue(QueueLimits(), journal())) == [b"first", b"second"]


def test_frames_that_are_done_are_freed_on_a_full_disk(journal, tmp_path):
    """Their segments are deleted although the records of it cannot be written."""
    queue = MessageQueue(QueueLimits(), journal(segment_bytes=100))
    for number in range(5):
        put(queue, number, [b"x" * 100])
    with full(0):
        assert len(contents(queue)) == 5
    assert (queue.messages, segments(tmp_path)) == (0, 1)


@pytest.mark.parametrize("options", [{}, {"durable": False}], ids=["journal", "spill"])
def test_a_message_that_waits_for_long_does_not_keep_later_segments(journal, tmp_path, options):
    """It is moved to the newest segment as often as needed, whether it waits or is out."""
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


def test_frames_that_are_done_in_order_are_never_moved(journal):
    """This holds however small the messages are, and however many wait."""
    queue, name, written = MessageQueue(QueueLimits(), journal(segment_bytes=1000)), "a stream with a name", []
    for number in range(2000):
        put(queue, number, [b"x"], name)
        written.append(queue.streams[name].waiting[-1].location)
        if number > 200:
            frame = queue.take(name)
            assert frame.location is written[frame.header.first]
            queue.done(name, frame.key)
    assert queue.messages == 201


def test_a_restart_in_the_middle_of_a_move_restores_a_message_once(journal, tmp_path):
    """The message is in the journal twice until its old segment is deleted."""
    file = journal(segment_bytes=100)
    queue = MessageQueue(QueueLimits(), file)
    for number in range(3):
        put(queue, number, [b"message %d" % number + b"x" * 100])
    first = (tmp_path / "journal" / "00000001.journal").read_bytes()
    entry = queue.peek("s")
    entry.location = file.move("s", entry.location)
    (tmp_path / "journal" / "00000001.journal").write_bytes(first)
    for _ in range(2):
        found = MessageQueue(QueueLimits(), journal())
        assert found.lengths() == {"s": 3}
    assert sorted(message[:9] for message in contents(found)) == [b"message 0", b"message 1", b"message 2"]
    assert MessageQueue(QueueLimits(), journal()).messages == 0


def test_a_damaged_frame_is_not_moved(journal, tmp_path, caplog):
    """It would end the newest segment, and the records behind it would be lost."""
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
