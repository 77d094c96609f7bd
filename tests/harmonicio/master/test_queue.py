"""The master's queue keeps what it has acknowledged within its limits, and restores it."""

import pytest
from queues import contents, put

from frameworks.harmonicio.engine.errors import RefusedError
from frameworks.harmonicio.engine.master.queue import MessageQueue, QueueLimits
from frameworks.harmonicio.engine.master.registry import RegisteredPe, RegisteredWorker, Registry
from frameworks.harmonicio.engine.wire.control_messages import NodeAddress
from frameworks.harmonicio.engine.wire.frame import HEADER_BYTES
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool, FrameReader


def test_a_batch_that_is_split_has_frames_that_a_pe_accepts():
    """A frame of many empty messages and nothing else is none."""
    queue, reader, messages = MessageQueue(QueueLimits(), None), FrameReader(BufferPool(), 2**20), [b"x", *[b""] * 40]
    put(queue, 0, messages)
    queue.split("s", 16)
    found = []
    while (frame := queue.take("s")) is not None:
        (received,) = reader.feed(queue.data(frame))
        found += [bytes(message) for message in received.batch()]
    assert found == messages


def test_frames_are_limited_as_each_takes_memory():
    """A batch takes no more of it than a message does."""
    queue = MessageQueue(QueueLimits(frames=3), None)
    for number in range(3):
        assert queue.free_space()[0] == 3 - number
        put(queue, 10 * number, [b"a"] * 10)
    with pytest.raises(RefusedError, match="the queue is full: 30 messages"):
        put(queue, 30, [b"a"])
    queue.done("s", queue.take("s").key)
    assert (queue.free_space()[0], queue.messages) == (1, 20)


def test_a_frame_that_comes_again_is_queued_once():
    """Its acknowledgement was lost, so that the connector sent it again."""
    queue = MessageQueue(QueueLimits(), None)
    assert put(queue, 0, [b"a", b"b"])
    assert not put(queue, 0, [b"a", b"b"])
    assert queue.lengths() == {"s": 2}


def test_a_frame_of_which_a_part_came_before_is_refused():
    """No connector sends that, and the queue could not tell the parts apart."""
    queue = MessageQueue(QueueLimits(), None)
    put(queue, 0, [b"a"])
    with pytest.raises(RefusedError, match="a part of messages 0 to 1 came before"):
        put(queue, 0, [b"a", b"b"])
    assert (contents(queue), queue.messages) == ([b"a"], 0)


def test_a_frame_that_comes_again_once_its_session_is_forgotten_counts_once(journal):
    """It leaves nothing behind, also when the first was still out."""
    queue = MessageQueue(QueueLimits(), journal())
    put(queue, 0, [b"a"])
    first = queue.take("s")
    queue.streams["s"].received.clear()
    put(queue, 0, [b"a"])
    assert queue.take("s") is None
    queue.done("s", first.key)
    assert (queue.messages, MessageQueue(QueueLimits(), journal()).messages) == (0, 0)


@pytest.mark.parametrize(
    "bounds",
    [QueueLimits(messages=3), QueueLimits(bytes=7), QueueLimits(memory_bytes=7), QueueLimits(stream_messages=3)],
)
def test_a_full_queue_refuses_a_frame(bounds):
    """The limits are messages, bytes, memory, and messages of a stream."""
    queue = MessageQueue(bounds, None)
    put(queue, 0, [b"abc", b"def"])
    with pytest.raises(RefusedError, match="full"):
        put(queue, 2, [b"ghi", b"jkl"])
    assert contents(queue) == [b"abc", b"def"]


def test_frames_that_do_not_fit_into_memory_are_on_the_disk(journal):
    """They are read in their turn."""
    queue = MessageQueue(QueueLimits(memory_bytes=4), journal())
    for number in range(5):
        put(queue, number, [b"%d%d%d" % (number, number, number)])
    assert [queue.take("s").data is None for _ in range(2)] == [False, True]
    assert sorted(contents(queue)) == [b"222", b"333", b"444"]


def test_spilled_frames_are_read_in_their_turn_and_do_not_outlive_the_master(journal, tmp_path):
    """Only frames beyond the memory limit are written."""
    queue = MessageQueue(QueueLimits(memory_bytes=4), journal(durable=False))
    for number in range(5):
        put(queue, number, [b"%d%d%d" % (number, number, number)])
    written = sum(file.stat().st_size for file in (tmp_path / "journal").iterdir())
    assert 4 * (HEADER_BYTES + 3) <= written < 5 * (HEADER_BYTES + 3 + 16)
    assert contents(queue) == [b"000", b"111", b"222", b"333", b"444"]
    put(queue, 5, [b"more than memory"])
    assert MessageQueue(QueueLimits(), journal(durable=False)).messages == 0


def test_an_unacknowledged_frame_waits_again_in_its_position():
    """It comes before those behind it."""
    queue = MessageQueue(QueueLimits(), None)
    put(queue, 0, [b"a"])
    put(queue, 1, [b"b"])
    entry = queue.take("s")
    queue.put_back("s", entry.key)
    assert contents(queue) == [b"a", b"b"]


def test_a_purged_stream_is_empty(journal):
    """A new queue finds nothing of it, either."""
    queue = MessageQueue(QueueLimits(), journal())
    put(queue, 0, [b"a", b"b"])
    assert queue.purge("s") == 2
    assert (queue.messages, queue.bytes, MessageQueue(QueueLimits(), journal()).messages) == (0, 0, 0)


def pe(pe_id, stream="s", now=0.0):
    return RegisteredPe(NodeAddress(pe_id, "127.0.0.1", 1), stream, "w", now)


def test_pes_workers_and_leases_expire():
    """They expire at the end of their own time."""
    registry = Registry(pe_seconds=5, worker_seconds=15, lease_seconds=10)
    registry.record_heartbeat(pe("a"), 0.0)
    registry.record_report(RegisteredWorker("host", 1, "w", 0.0), 0.0)
    registry.lease("s", 7, 0.0)
    assert registry.expire(4.0) == ([], [])
    assert registry.expire(6.0) == (["a"], [])
    assert registry.expire(16.0) == ([], ["host:1"])
    assert registry.leases == {}


def test_an_expired_pe_comes_back_but_one_whose_end_was_reported_does_not():
    """Only the report of its worker is final."""
    registry = Registry()
    registry.record_heartbeat(pe("a"), 0.0)
    registry.expire(100.0)
    assert registry.record_heartbeat(pe("a"), 101.0)
    registry.record_end("a", 102.0)
    assert not registry.record_heartbeat(pe("a"), 103.0)
    assert registry.addresses("s") == []


def test_a_legacy_pe_is_assigned_once_and_idle_again_when_not_contacted():
    """The first registered is assigned first, and a second registration replaces the first."""
    registry = Registry(pe_seconds=5)
    first, second = pe("a"), RegisteredPe(NodeAddress("b", "127.0.0.1", 2), "s", "", 0.0)
    for one in (first, second, first):
        registry.register_idle(one)
    assert [registry.assign_idle("s", 0.0), registry.assign_idle("s", 0.0), registry.assign_idle("s", 0.0)] == [
        first,
        second,
        None,
    ]
    registry.remove_idle(second)
    registry.expire(6.0)
    assert [registry.assign_idle("s", 7.0), registry.assign_idle("s", 7.0)] == [first, None]


def test_a_name_without_idle_legacy_pes_is_forgotten():
    """Registrations under many names leave nothing behind."""
    registry = Registry(pe_seconds=5)
    for number in range(10):
        registry.register_idle(pe("a", stream=str(number)))
        registry.assign_idle(str(number), 0.0)
        registry.register_idle(pe("a", stream=str(number)))
        registry.remove_idle(pe("a", stream=str(number)))
    assert (registry.idle, registry.assigned) == ({}, {})


def test_empty_messages_wait_for_a_pe_of_ours(caplog):
    """A legacy PE cannot get them, and takes what is behind them; the log says so once."""
    queue = MessageQueue(QueueLimits(), None)
    for first, messages in ((0, [b""]), (1, [b"", b"a"]), (3, [b"b"])):
        put(queue, first, messages)
    assert contents(queue) == [b"a", b"b"]
    assert contents(queue) == []
    assert (queue.length("s"), caplog.text.count("an empty message of s waits")) == (2, 1)
    assert [queue.take("s").header.size for _ in range(2)] == [0, 0]
