"""The master's queue keeps what it has acknowledged, within its bounds, and finds it again."""

import pytest
from queues import contents, put

from frameworks.harmonicio.engine.errors import Refused
from frameworks.harmonicio.engine.master.queue import Backlog, Bounds
from frameworks.harmonicio.engine.master.registry import Pe, Registry, Worker
from frameworks.harmonicio.engine.wire.control_messages import Place
from frameworks.harmonicio.engine.wire.frame import HEADER_BYTES


def test_a_frame_that_comes_again_is_queued_once():
    """Its acknowledgement was lost."""
    backlog = Backlog(Bounds(), None)
    assert put(backlog, 0, [b"a", b"b"])
    assert not put(backlog, 0, [b"a", b"b"])
    assert backlog.lengths() == {"s": 2}


def test_a_frame_of_which_a_part_came_before_is_refused():
    """A connector does not do that; whoever does would have the queue count what it cannot tell apart."""
    backlog = Backlog(Bounds(), None)
    put(backlog, 0, [b"a"])
    with pytest.raises(Refused, match="a part of messages 0 to 1 came before"):
        put(backlog, 0, [b"a", b"b"])
    assert (contents(backlog), backlog.messages) == ([b"a"], 0)


def test_a_frame_that_comes_again_once_its_session_is_forgotten_counts_once(journal):
    """It is delivered again, and leaves nothing behind, also when the first was still out."""
    backlog = Backlog(Bounds(), journal())
    put(backlog, 0, [b"a"])
    first = backlog.take("s")
    backlog.streams["s"].seen.clear()
    put(backlog, 0, [b"a"])
    assert backlog.take("s") is None
    backlog.done("s", first.key)
    assert (backlog.messages, Backlog(Bounds(), journal()).messages) == (0, 0)


@pytest.mark.parametrize(
    "bounds", [Bounds(messages=3), Bounds(bytes=7), Bounds(memory_bytes=7), Bounds(stream_messages=3)]
)
def test_a_full_queue_refuses(bounds):
    """By count, by bytes, by memory, by stream."""
    backlog = Backlog(bounds, None)
    put(backlog, 0, [b"abc", b"def"])
    with pytest.raises(Refused, match="full"):
        put(backlog, 2, [b"ghi", b"jkl"])
    assert contents(backlog) == [b"abc", b"def"]


def test_what_does_not_fit_into_memory_is_on_the_disk(journal):
    """And comes back in its turn."""
    backlog = Backlog(Bounds(memory_bytes=4), journal())
    for number in range(5):
        put(backlog, number, [b"%d%d%d" % (number, number, number)])
    assert [backlog.take("s").data is None for _ in range(2)] == [False, True]
    assert sorted(contents(backlog)) == [b"222", b"333", b"444"]


def test_what_is_spilled_comes_back_in_its_turn_and_does_not_outlive_the_master(journal, tmp_path):
    """Only what memory has no room for is written."""
    backlog = Backlog(Bounds(memory_bytes=4), journal(durable=False))
    for number in range(5):
        put(backlog, number, [b"%d%d%d" % (number, number, number)])
    written = sum(file.stat().st_size for file in (tmp_path / "journal").iterdir())
    assert 4 * (HEADER_BYTES + 3) <= written < 5 * (HEADER_BYTES + 3 + 16)
    assert contents(backlog) == [b"000", b"111", b"222", b"333", b"444"]
    put(backlog, 5, [b"more than memory"])
    assert Backlog(Bounds(), journal(durable=False)).messages == 0


def test_a_frame_that_nobody_answered_for_waits_again_at_its_place():
    """Before those behind it."""
    backlog = Backlog(Bounds(), None)
    put(backlog, 0, [b"a"])
    put(backlog, 1, [b"b"])
    entry = backlog.take("s")
    backlog.back("s", entry.key)
    assert contents(backlog) == [b"a", b"b"]


def test_a_purged_stream_is_empty(journal):
    """Also for a new queue."""
    backlog = Backlog(Bounds(), journal())
    put(backlog, 0, [b"a", b"b"])
    assert backlog.purge("s") == 2
    assert (backlog.messages, backlog.bytes, Backlog(Bounds(), journal()).messages) == (0, 0, 0)


def pe(pe_id, stream="s", now=0.0):
    return Pe(Place(pe_id, "127.0.0.1", 1), stream, "w", now)


def test_pes_workers_and_leases_expire():
    """When they were not heard of for as long as was said."""
    registry = Registry(pe_seconds=5, worker_seconds=15, lease_seconds=10)
    registry.beat(pe("a"), 0.0)
    registry.report(Worker("host", 1, "w", 0.0), 0.0)
    registry.lease("s", 7, 0.0)
    assert registry.expire(4.0) == ([], [])
    assert registry.expire(6.0) == (["a"], [])
    assert registry.expire(16.0) == ([], ["host:1"])
    assert registry.leases == {}


def test_a_pe_that_comes_back_is_known_again_unless_its_worker_buried_it():
    """Silence is not death; its worker's word is."""
    registry = Registry()
    registry.beat(pe("a"), 0.0)
    registry.expire(100.0)
    assert registry.beat(pe("a"), 101.0)
    registry.end("a", 102.0)
    assert not registry.beat(pe("a"), 103.0)
    assert registry.places("s") == []


def test_old_pes_are_handed_out_once_and_come_back_when_not_contacted():
    """First registered, first out; a second registration replaces the first."""
    registry = Registry(pe_seconds=5)
    first, second = pe("a"), Pe(Place("b", "127.0.0.1", 2), "s", "", 0.0)
    for one in (first, second, first):
        registry.register_idle(one)
    assert [registry.hand_out("s", 0.0), registry.hand_out("s", 0.0), registry.hand_out("s", 0.0)] == [
        first,
        second,
        None,
    ]
    registry.withdraw(second)
    registry.expire(6.0)
    assert [registry.hand_out("s", 7.0), registry.hand_out("s", 7.0)] == [first, None]


def test_names_that_no_old_pe_waits_under_are_forgotten():
    """Whoever registers under one after the other leaves nothing behind."""
    registry = Registry(pe_seconds=5)
    for number in range(10):
        registry.register_idle(pe("a", stream=str(number)))
        registry.hand_out(str(number), 0.0)
        registry.register_idle(pe("a", stream=str(number)))
        registry.withdraw(pe("a", stream=str(number)))
    assert (registry.idle, registry.handed) == ({}, {})
