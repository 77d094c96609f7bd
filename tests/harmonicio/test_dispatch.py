"""What waits in the queue is fitted to the PEs that there are, and one frame is not in the way of the others."""

import asyncio
import contextlib
import time

import pytest
from processes import DEADLINE, free_port, until
from queues import full, put
from stubs import Came, Stub

from frameworks.harmonicio.engine.config import MasterConfig
from frameworks.harmonicio.engine.master.dispatch import Dispatcher
from frameworks.harmonicio.engine.master.queue import Backlog, Bounds
from frameworks.harmonicio.engine.master.registry import Pe, Registry
from frameworks.harmonicio.engine.master.service import Master


class Queue:
    """A stream's queue, its dispatcher, and PEs that are stubs."""

    def __init__(self, journal=None):
        self.backlog, self.registry = Backlog(Bounds(), journal), Registry()
        self.dispatcher = Dispatcher("s", self.backlog, self.registry, "")
        self.open = []

    def step(self):
        self.dispatcher.step(time.monotonic())

    def reached(self, name, messages=100, **more):
        """What comes to a new PE."""
        stub = Stub(name)
        self.registry.beat(Pe(stub.place, "s", "w", 0.0), time.monotonic())
        self.step()
        came = Came(stub.welcome(messages, **more))
        self.open += [stub.listener, came.sock]
        until(lambda: (self.step(), self.dispatcher._links[name].ready)[1], "the welcome")
        return came

    def close(self):
        self.dispatcher._close()
        for one in self.open:
            one.close()


@pytest.fixture
def queue():
    with contextlib.closing(Queue()) as made:
        yield made


def delivered(queue, *pes):
    """All messages, in the order in which those PEs got and acknowledged them."""
    found = []

    def step():
        queue.step()
        for pe in pes:
            pe.look()
            while pe.frames:
                frame = pe.frames.pop(0)
                found.extend(map(bytes, frame.batch()))
                pe.acknowledge(frame)
        return not queue.backlog.length("s")

    until(step, "an empty queue")
    return found


def test_a_pe_is_given_no_more_than_it_lets_be_on_its_way(queue):
    """However large the frames are in which messages came."""
    messages = [b"%d" % number for number in range(1000)]
    put(queue.backlog, 0, messages)
    pe = queue.reached("one", messages=4)
    until(pe.look, "a frame")
    queue.step()
    assert [frame.header.count for frame in pe.look()] == [4]
    assert delivered(queue, pe) == messages


def test_what_one_pe_has_no_credit_for_goes_to_another(queue):
    """Of one frame."""
    put(queue.backlog, 0, [b"x"] * 10)
    pes = [queue.reached("one", messages=4), queue.reached("two", messages=4)]
    until(lambda: all(pe.look() for pe in pes), "frames")
    assert [[frame.header.count for frame in pe.look()] for pe in pes] == [[4], [4]]


def test_on_a_full_disk_a_frame_goes_as_it_is(journal):
    """Taken apart it would need room, and delivered it makes some."""
    with contextlib.closing(Queue(journal())) as queue:
        put(queue.backlog, 0, [b"x"] * 10)
        with full(0):
            pe = queue.reached("one", messages=4)
            until(pe.look, "a frame")
            assert [frame.header.count for frame in pe.frames] == [10]
            assert delivered(queue, pe) == [b"x"] * 10


@pytest.mark.parametrize("sizes", [[100] * 8, [90, 100] * 4], ids=["equal", "different"])
def test_a_frame_that_is_larger_than_a_pe_accepts_is_taken_apart(queue, sizes):
    """As far as its messages allow."""
    messages = [bytes([index]) * size for index, size in enumerate(sizes)]
    put(queue.backlog, 0, messages)
    pe = queue.reached("one", most_bytes=300)
    assert delivered(queue, pe) == messages
    assert "one" in queue.dispatcher._links


def test_a_message_that_no_pe_accepts_is_in_nobodys_way(queue, caplog):
    """It waits for one that does, and that is said."""
    put(queue.backlog, 0, [b"x" * 1000])
    put(queue.backlog, 1, [b"behind"])
    pe = queue.reached("one", most_bytes=300)
    until(pe.look, "what is behind it")
    assert [bytes(message) for frame in pe.frames for message in frame.batch()] == [b"behind"]
    assert "a message of 1000 bytes of s waits: its PEs accept 300 at most" in caplog.text
    assert delivered(queue, pe, queue.reached("two")) == [b"behind", b"x" * 1000]


def test_streams_that_are_empty_take_up_no_dispatcher():
    """However many there have been, the next one has its own; what was delivered stays counted."""

    async def served():
        master = Master(MasterConfig(port=free_port(), data_port=0))
        await master.open()
        for name in map(str, range(10)):
            master.backlog.add_message(name, b"x")
            master._queued(name)
        known = [len(master._dispatchers)]
        for name in map(str, range(10)):
            master._dispatchers[name][0].delivered = 1
            master.backlog.purge(name)
        async with asyncio.timeout(DEADLINE):
            while master._dispatchers:
                await asyncio.sleep(0.01)
        master.backlog.add_message("one more", b"x")
        master._queued("one more")
        known += [len(master._dispatchers), master.view()["totals"]["delivered_total"]]
        await master.close()
        return known

    assert asyncio.run(served()) == [10, 1, 10]
