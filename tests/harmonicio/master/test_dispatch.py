"""Frames of the queue are fitted to the PEs, and no frame delays the others."""

import asyncio
import contextlib
import time

import pytest
from processes import DEADLINE, free_port, wait_until
from queues import full, put
from stubs import ReceivedFrames, Stub

from frameworks.harmonicio.engine.config import MasterConfig
from frameworks.harmonicio.engine.master.dispatch import Dispatcher
from frameworks.harmonicio.engine.master.queue import MessageQueue, QueueLimits
from frameworks.harmonicio.engine.master.registry import RegisteredPe, Registry
from frameworks.harmonicio.engine.master.service import run_master


class QueueFixture:
    """A stream's queue, its dispatcher, and PEs that are stubs."""

    def __init__(self, journal=None):
        self.message_queue, self.registry = MessageQueue(QueueLimits(), journal), Registry()
        self.dispatcher = Dispatcher("s", self.message_queue, self.registry, "")
        self.open = []

    def step(self):
        self.dispatcher.step(time.monotonic())

    def reached(self, name, messages=100, **more):
        """Register a new PE, wait for its link, and return the frames that it receives."""
        stub = Stub(name)
        self.registry.record_heartbeat(RegisteredPe(stub.address, "s", "w", 0.0), time.monotonic())
        self.step()
        came = ReceivedFrames(stub.welcome(messages, **more))
        self.open += [stub.listener, came.sock]
        wait_until(lambda: (self.step(), self.dispatcher.links.get(name).ready)[1], "the welcome")
        return came

    def close(self):
        self.dispatcher.close()
        for one in self.open:
            one.close()


@pytest.fixture
def queue():
    with contextlib.closing(QueueFixture()) as made:
        yield made


def delivered(queue, *pes):
    """Return all messages in the order in which those PEs received and acknowledged them."""
    found = []

    def step():
        queue.step()
        for pe in pes:
            pe.look()
            while pe.frames:
                frame = pe.frames.pop(0)
                found.extend(map(bytes, frame.batch()))
                pe.acknowledge(frame)
        return not queue.message_queue.length("s")

    wait_until(step, "an empty queue")
    return found


def test_a_pe_gets_no_more_than_its_credit(queue):
    """A queued frame that exceeds the credit is split."""
    messages = [b"%d" % number for number in range(1000)]
    put(queue.message_queue, 0, messages)
    pe = queue.reached("one", messages=4)
    wait_until(pe.look, "a frame")
    queue.step()
    assert [frame.header.count for frame in pe.look()] == [4]
    assert delivered(queue, pe) == messages


def test_messages_beyond_the_credit_of_one_pe_go_to_another(queue):
    """Parts of one frame go to both PEs."""
    put(queue.message_queue, 0, [b"x"] * 10)
    pes = [queue.reached("one", messages=4), queue.reached("two", messages=4)]
    wait_until(lambda: all(pe.look() for pe in pes), "frames")
    assert [[frame.header.count for frame in pe.look()] for pe in pes] == [[4], [4]]


def test_on_a_full_disk_a_frame_is_sent_without_a_split(journal):
    """A split needs disk space, while a delivery frees some."""
    with contextlib.closing(QueueFixture(journal())) as queue:
        put(queue.message_queue, 0, [b"x"] * 10)
        with full(0):
            pe = queue.reached("one", messages=4)
            wait_until(pe.look, "a frame")
            assert [frame.header.count for frame in pe.frames] == [10]
            assert delivered(queue, pe) == [b"x"] * 10


@pytest.mark.parametrize("sizes", [[100] * 8, [90, 100] * 4], ids=["equal", "different"])
def test_a_frame_that_is_larger_than_a_pe_accepts_is_split(queue, sizes):
    """All messages are delivered in order."""
    messages = [bytes([index]) * size for index, size in enumerate(sizes)]
    put(queue.message_queue, 0, messages)
    pe = queue.reached("one", max_body_bytes=300)
    assert delivered(queue, pe) == messages
    assert queue.dispatcher.links.get("one") is not None


def test_a_message_that_no_pe_accepts_does_not_delay_others(queue, caplog):
    """It waits for a PE that accepts it, and the log says so."""
    put(queue.message_queue, 0, [b"x" * 1000])
    put(queue.message_queue, 1, [b"behind"])
    pe = queue.reached("one", max_body_bytes=300)
    wait_until(pe.look, "what is behind it")
    assert [bytes(message) for frame in pe.frames for message in frame.batch()] == [b"behind"]
    assert "a message of 1000 bytes of s waits: its PEs accept 300 at most" in caplog.text
    assert delivered(queue, pe, queue.reached("two")) == [b"behind", b"x" * 1000]


def test_a_dispatcher_ends_when_its_stream_is_empty():
    """A later message starts a new one, and the delivered messages stay counted."""

    async def serve():
        async with run_master(MasterConfig(port=free_port(), data_port=0)) as master:
            queue, dispatchers = master.coordinator.queue, master.dispatchers
            for name in map(str, range(10)):
                queue.add_message(name, b"x")
                dispatchers.deliver(name)
            counts = [len(dispatchers)]
            for dispatcher, _ in dispatchers._running.values():
                dispatcher.delivered = 1
            for name in map(str, range(10)):
                queue.purge(name)
            async with asyncio.timeout(DEADLINE):
                while len(dispatchers):
                    await asyncio.sleep(0.01)
            queue.add_message("one more", b"x")
            dispatchers.deliver("one more")
            return [*counts, len(dispatchers), master.view()["totals"]["delivered_total"]]

    assert asyncio.run(serve()) == [10, 1, 10]
