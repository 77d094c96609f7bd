"""A peer that comes back is reached again, and one that disappeared is given up."""

import contextlib
import socket
import time

import pytest
from processes import wait_until
from stubs import ReceivedFrames, Stub

from frameworks.harmonicio.engine.connector import Feeder, Options
from frameworks.harmonicio.engine.connector.link import Link
from frameworks.harmonicio.engine.connector.link_state import ANSWER_TIMEOUT_S, SILENCE_TIMEOUT_S
from frameworks.harmonicio.engine.errors import MessageTooLongError
from frameworks.harmonicio.engine.wire.connection import FrameConnection
from frameworks.harmonicio.engine.wire.control_messages import Hello, Leases
from frameworks.harmonicio.engine.wire.frame import FrameKind, encode_control
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool

MESSAGE = b"a message that is long enough to be found"


@pytest.fixture
def stubs():
    """A master and two PEs."""
    found = [Stub(name) for name in ("master", "one", "two")]
    yield found
    for stub in found:
        stub.listener.close()


@pytest.fixture
def feeder(stubs):
    """A feeder of that master."""
    one = Feeder(Options(c_name="s", port=stubs[0].address.port, overflow="never", shared_memory=False))
    yield one
    one.close()


def reached(feeder, master, stub):
    """Lease one PE only; return the PE's end of its connection."""
    known = len(feeder.watched_sockets())
    master.sendall(encode_control(FrameKind.LEASES, Leases(10.0, [stub.address])))
    wait_until(lambda: (feeder.step(), len(feeder.watched_sockets()) > known)[1], "a connection")
    pes, sock = feeder.pes, stub.welcome()
    wait_until(lambda: (feeder.step(), feeder.pes > pes)[1], "the welcome")
    return sock


def test_a_peer_that_was_away_for_long_is_reached_again(stubs):
    """Each attempt has its own timeout for an answer."""
    link = Link(stubs[1].address, Hello("connector", "s", 1), BufferPool())
    later = time.monotonic() + 10 * ANSWER_TIMEOUT_S
    link.step(later)
    sock = stubs[1].welcome()
    wait_until(lambda: (link.step(later + 0.001), link.ready)[1], "the welcome")
    assert link.ready
    link.close()
    sock.close()


def test_a_missing_answer_to_a_hello_ends_the_attempt(stubs):
    """The next attempt follows."""
    link = Link(stubs[1].address, Hello("connector", "s", 1), BufferPool())
    later = time.monotonic() + 1.0
    link.step(later)
    assert link.sock is not None
    link.step(later + ANSWER_TIMEOUT_S + 1.0)
    assert link.sock is None
    link.close()


def test_unacknowledged_frames_of_a_silent_peer_without_a_lease_go_elsewhere(stubs, feeder):
    """Its connection is still open, as that of a host that lost its power."""
    feeder.step()
    master = stubs[0].welcome()
    socks = [reached(feeder, master, stubs[1])]
    assert feeder.offer([MESSAGE]) == 1
    socks.append(reached(feeder, master, stubs[2]))
    feeder.step(time.monotonic() + SILENCE_TIMEOUT_S / 2)
    assert (feeder.pes, feeder.redelivered) == (2, 0)
    feeder.step(time.monotonic() + SILENCE_TIMEOUT_S + 1)
    assert (feeder.pes, feeder.redelivered) == (1, 1)
    data = b""
    while MESSAGE not in data:
        data += socks[1].recv(4096)
    for sock in (master, *socks):
        sock.close()


def test_the_kernel_detects_a_host_that_disappeared(stubs):
    """Keepalive probes and the user timeout are set."""
    peer = FrameConnection.dial(stubs[1].address.host, stubs[1].address.port, BufferPool(), 100)
    assert peer.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert peer.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) < 60
    assert 0 < peer.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 60_000
    peer.close()


@contextlib.contextmanager
def cut_off(stubs, delivery):
    """Yield a feeder with a message unacknowledged at the first PE, whose connection was lost and is dialled again."""
    options = Options(c_name="s", port=stubs[0].address.port, overflow="never", shared_memory=False, delivery=delivery)
    with contextlib.closing(Feeder(options)) as feeder:
        feeder.step()
        with stubs[0].welcome() as master, reached(feeder, master, stubs[1]) as sock:
            assert feeder.offer([MESSAGE]) == 1
            sock.shutdown(socket.SHUT_RDWR)
            wait_until(
                lambda: (feeder.step(), not feeder.pes and len(feeder.watched_sockets()) == 2)[1], "the next attempt"
            )
            yield feeder


@pytest.mark.parametrize(("delivery", "counts"), [("at-most-once", (1, 0)), ("at-least-once", (0, 1))])
def test_another_pe_at_the_address_of_a_lost_one_is_not_taken_for_it(stubs, delivery, counts):
    """The message has failed, or is redelivered as after any loss."""
    with cut_off(stubs, delivery) as feeder, stubs[1].welcome(instance="another"):
        wait_until(lambda: (feeder.step(), (feeder.failed, feeder.redelivered) == counts)[1], "an outcome")
        assert (feeder.failed, feeder.redelivered) == counts


def test_a_pe_that_is_reached_again_is_sent_what_it_did_not_acknowledge(stubs):
    """The same PE knows what it has processed; this holds for at most once, too."""
    with cut_off(stubs, "at-most-once") as feeder, stubs[1].welcome() as again:
        came = ReceivedFrames(again)
        wait_until(lambda: (feeder.step(), came.look())[1], "the frame")
        assert [bytes(message) for message in came.frames[0].batch()] == [MESSAGE]
        assert (feeder.failed, feeder.redelivered) == (0, 0)


def reach_all(feeder, master, *stubs, limits):
    """Lease several PEs, which accept frames of these lengths; return the PEs' ends of their connections."""
    known = len(feeder.watched_sockets())
    master.sendall(encode_control(FrameKind.LEASES, Leases(10.0, [stub.address for stub in stubs])))
    wait_until(lambda: (feeder.step(), len(feeder.watched_sockets()) == known + len(stubs))[1], "the connections")
    socks = [stub.welcome(max_body_bytes=limit) for stub, limit in zip(stubs, limits, strict=True)]
    wait_until(lambda: (feeder.step(), feeder.pes == len(stubs))[1], "the welcomes")
    return socks


def test_a_message_goes_to_a_pe_that_accepts_it(stubs, feeder):
    """Another one has fewer unacknowledged messages, and a lower limit; what none accepts is refused."""
    feeder.step()
    with contextlib.ExitStack() as opened:
        master = opened.enter_context(stubs[0].welcome())
        socks = reach_all(feeder, master, *stubs[1:], limits=(10, 1000))
        for sock in socks:
            opened.enter_context(sock)
        for _ in range(3):
            assert feeder.offer([MESSAGE]) == 1
        came = [ReceivedFrames(sock) for sock in socks]
        wait_until(lambda: (feeder.step(), len(came[1].look()) == 3)[1], "three frames")
        assert came[0].look() == []
        with pytest.raises(MessageTooLongError, match="1000 at most"):
            feeder.offer([bytes(1001)])


def test_a_frame_is_sent_again_only_to_who_accepts_it(stubs):
    """The other PE accepts each of its messages, and not the frame: the queue takes it."""
    options = Options(c_name="s", port=stubs[0].address.port, credit_timeout=0.0, shared_memory=False)
    with contextlib.closing(Feeder(options)) as feeder:
        feeder.step()
        with stubs[0].welcome() as master:
            lost, other = reach_all(feeder, master, *stubs[1:], limits=(1000, len(MESSAGE)))
            assert feeder.offer([MESSAGE] * 4) == 4
            lost.close()
            queued, came = ReceivedFrames(master), ReceivedFrames(other)
            wait_until(lambda: (feeder.step(), queued.look() or len(came.look()) > 2)[1], "the frame")
            assert [[frame.header.count for frame in one.look()] for one in (queued, came)] == [[2], [1, 1]]
            other.close()
