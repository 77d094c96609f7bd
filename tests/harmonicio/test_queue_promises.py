"""What the master's queue promises holds when a PE is not reached, when the master is killed, and when the disk fails."""

import asyncio
import contextlib
import json
import resource
import socket
import struct

import pytest
from legacy_peers import OldPe, asked, pushed
from processes import numbered, until

from bench.errors import UsageError
from bench.model.cell import Cell
from bench.plugins import registry
from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.master.dispatch import Dispatcher
from frameworks.harmonicio.engine.master.journal import Journal
from frameworks.harmonicio.engine.master.queue import Backlog, Bounds
from frameworks.harmonicio.engine.master.registry import Pe, Registry
from frameworks.harmonicio.engine.wire.control_messages import Place
from frameworks.harmonicio.engine.wire.frame import seal


def registered(stand, address, port):
    """The answer to an old PE that says where it is."""
    path = f"/streamRequest?token=None&batch_addr={address}&batch_port={port}&batch_status=0&c_name=img"
    return asked(stand.port, "POST", path)


def taken(backlog, stream, most):
    """Its first messages, which are done."""
    found = []
    while len(found) < most and (one := backlog.take_message(stream)) is not None:
        backlog.done(stream, one[0].key)
        found.append(one[1])
    return found


@pytest.fixture
def deaf():
    """The port of a listener that has as many connections as it takes: who dials it waits."""
    with contextlib.ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            sock = opened.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@pytest.mark.real
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_message_on_its_way_to_an_old_pe_outlives_the_master(stand, deaf, end):
    """It is done when it was sent, not when it is going to be."""
    stand.start_master()
    assert registered(stand, "127.0.0.1", deaf)[0] == 200
    pushed("127.0.0.1", stand.data_port, b"003imgfirst")
    verbose = "/messagesQuery?token=None&command=verbose"
    until(lambda: json.loads(asked(stand.port, "GET", verbose)[1])["CONTAINERS"] == {}, "the master's dialling")
    getattr(stand, end)("master")
    stand.start_master()
    pe = OldPe(stand.port, "img")
    until(lambda: pe.received == [b"first"], "the message")
    pe.close()


@pytest.mark.real
def test_a_message_for_a_pe_that_polled_and_went_waits_again(stand):
    """It is done when the answer was sent."""
    stand.start_master()
    pushed("127.0.0.1", stand.data_port, b"003img" + b"x" * 2**24)
    length = "/messagesQuery?token=None&command=queueLength"
    until(lambda: asked(stand.port, "GET", length)[1] == b'{"img": 1}', "the message")
    with socket.socket() as gone:
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset
        gone.connect(("127.0.0.1", stand.port))
        path = "/streamRequest?token=None&batch_addr=127.0.0.1&batch_port=1&batch_status=0&c_name=img"
        gone.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())
        assert b" 203 " in gone.recv(1000)
    pe = OldPe(stand.port, "img")
    until(lambda: pe.received, "the message again")
    assert [len(message) for message in pe.received] == [2**24]
    pe.close()


@pytest.mark.real
def test_an_old_pe_at_no_address_is_refused_and_the_stream_goes_on(stand):
    """By the old wire's own words."""
    stand.start_master()
    for address in ("..", "%00", "", "a" * 64):
        assert registered(stand, address, 9000) == (406, b"Invalid data type!")
    pe = OldPe(stand.port, "img")
    assert pe.registered.acquire(timeout=10)
    pushed("127.0.0.1", stand.data_port, b"003imgfirst")
    until(lambda: pe.received == [b"first"], "the message")
    pe.close()


@pytest.mark.real
def test_a_pe_of_ours_at_no_address_is_refused(stand):
    """Nobody could dial it."""
    stand.start_master()
    beat = {"id": "0123456789ab", "c_name": "s", "host": "..", "port": 9000}
    status, text = asked(stand.port, "POST", "/v1/beat", json.dumps(beat))
    assert (status, b"neither an address" in text, stand.pes()) == (409, True, [])


@pytest.mark.parametrize("host", ["..", "\0"])
def test_a_message_for_an_address_that_is_none_waits_again(host):
    """Whoever let it be registered: the dispatcher goes on, without that PE."""
    backlog, registry = Backlog(Bounds(), None), Registry()
    backlog.add_message("img", b"first")
    registry.register_idle(Pe(Place("a", host, 9000), "img", "", 0.0, "idle"))
    asyncio.run(Dispatcher("img", backlog, registry, "")._to_old_pes())
    assert (backlog.length("img"), registry.idle) == (1, {})
    assert taken(backlog, "img", 1) == [b"first"]


def test_a_batch_is_taken_apart_at_its_place(tmp_path):
    """Whoever takes its first message and gives it back, or is killed, loses none of the others."""
    journal = Journal(tmp_path, sync=False)
    backlog = Backlog(Bounds(), journal)
    for first, messages in ((0, [b"a", b"b", b"c"]), (3, [b"d"])):
        head, *body = seal(messages, 1, first, 0).buffers
        backlog.add("s", head, b"".join(body))
    entry, message = backlog.take_message("s")
    again = Journal(tmp_path, sync=False)
    found = Backlog(Bounds(), again)
    backlog.back("s", entry.key)
    assert (message, taken(backlog, "s", 5)) == (b"a", [b"a", b"b", b"c", b"d"])
    assert sorted(taken(found, "s", 4)) == [b"a", b"b", b"c", b"d"]
    journal.close()
    again.close()


@pytest.mark.real
def test_what_the_disk_did_not_take_is_not_acknowledged(stand):
    """Who sent it is parted from, each time it comes again; a master that is started again takes it."""
    stand.start_master()
    segment = stand.folder / "state" / "journal" / "00000001.journal"
    segment.symlink_to("/dev/null")  # where everything can be written, and fdatasync fails
    with Connector(c_name="s", port=stand.data_port) as connector:
        connector.send_many(numbered(0, 10))
        feeder = connector.feeder
        until(lambda: (feeder.step(), stand.log().count("nothing is acknowledged") > 1)[1], "the second refusal")
        assert feeder.acked == 0
        assert stand.stop("master") == 0
        segment.unlink()
        stand.start_master()
        connector.flush()
        assert feeder.acked == 10
    assert stand.operator.status()["streams"][0]["queued"] == 10


@pytest.mark.real
def test_a_full_disk_is_told_and_waited_for(stand):
    """Once a second, not as often as a connector can come back; what it took before stays, and the rest follows."""
    stand.start_master()
    master, unlimited = stand.processes["master"].pid, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(master, resource.RLIMIT_FSIZE, (2**20, resource.RLIM_INFINITY))
    with Connector(c_name="s", port=stand.data_port) as connector:
        connector.send_many(numbered(0, 300, size=10_000))
        feeder = connector.feeder
        until(lambda: (feeder.step(), stand.log().count("the journal takes nothing") > 2)[1], "the third refusal")
        assert stand.log().count("the journal takes nothing") < 10
        assert 0 < feeder.acked < 105
        resource.prlimit(master, resource.RLIMIT_FSIZE, unlimited)
        connector.flush()
        assert feeder.acked == 300
    assert stand.operator.status()["streams"][0]["queued"] == 300


def test_at_most_once_through_the_queue_is_refused():
    """In one line that says what to set."""
    with pytest.raises(UsageError, match="set overflow: never") as caught:
        registry.source("stream", {"stream": {"delivery": "at-most-once", "overflow": "full"}})
    assert "\n" not in str(caught.value)


@pytest.mark.real
def test_at_most_once_never_uses_the_queue(ground):
    """Where nothing else was said."""
    source = registry.source("stream", {"stream": {"delivery": "at-most-once"}})
    endpoint = source.open(Cell("harmonicio", "stream", 100, 0.0), ground)
    assert endpoint.client["overflow"] == "never"
