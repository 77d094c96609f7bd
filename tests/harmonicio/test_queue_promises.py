"""What the master's queue promises holds when a PE is not reached, when the master is killed, and when the disk fails."""

import asyncio
import contextlib
import json
import resource
import socket
import struct

import pytest
from legacy_peers import LegacyPe, push_raw, request
from processes import numbered, wait_until

from bench.errors import UsageError
from bench.model.cell import Cell
from bench.plugins import registry
from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.master.dispatch import Dispatcher
from frameworks.harmonicio.engine.master.journal import Journal
from frameworks.harmonicio.engine.master.queue import MessageQueue, QueueLimits
from frameworks.harmonicio.engine.master.registry import RegisteredPe, Registry
from frameworks.harmonicio.engine.wire.control_messages import Address
from frameworks.harmonicio.engine.wire.frame import encode_frame


def registered(cluster, address, port):
    """The answer to an old PE that says where it is."""
    path = f"/streamRequest?token=None&batch_addr={address}&batch_port={port}&batch_status=0&c_name=img"
    return request(cluster.port, "POST", path)


def taken(queue, stream, most):
    """Its first messages, which are done."""
    found = []
    while len(found) < most and (one := queue.take_message(stream)) is not None:
        queue.done(stream, one[0].key)
        found.append(one[1])
    return found


@pytest.fixture
def deaf():
    """The port of a listener that has as many connections as it takes: who dials it waits."""
    with contextlib.ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), queue=0))
        for _ in range(4):
            sock = opened.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@pytest.mark.real
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_message_on_its_way_to_an_old_pe_outlives_the_master(cluster, deaf, end):
    """It is done when it was sent, not when it is going to be."""
    cluster.start_master()
    assert registered(cluster, "127.0.0.1", deaf)[0] == 200
    push_raw("127.0.0.1", cluster.data_port, b"003imgfirst")
    verbose = "/messagesQuery?token=None&command=verbose"
    wait_until(
        lambda: json.loads(request(cluster.port, "GET", verbose)[1])["CONTAINERS"] == {}, "the master's dialling"
    )
    getattr(cluster, end)("master")
    cluster.start_master()
    pe = LegacyPe(cluster.port, "img")
    wait_until(lambda: pe.received == [b"first"], "the message")
    pe.close()


@pytest.mark.real
def test_a_message_for_a_pe_that_polled_and_went_waits_again(cluster):
    """It is done when the answer was sent."""
    cluster.start_master()
    push_raw("127.0.0.1", cluster.data_port, b"003img" + b"x" * 2**24)
    length = "/messagesQuery?token=None&command=queueLength"
    wait_until(lambda: request(cluster.port, "GET", length)[1] == b'{"img": 1}', "the message")
    with socket.socket() as gone:
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset
        gone.connect(("127.0.0.1", cluster.port))
        path = "/streamRequest?token=None&batch_addr=127.0.0.1&batch_port=1&batch_status=0&c_name=img"
        gone.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())
        assert b" 203 " in gone.recv(1000)
    pe = LegacyPe(cluster.port, "img")
    wait_until(lambda: pe.received, "the message again")
    assert [len(message) for message in pe.received] == [2**24]
    pe.close()


@pytest.mark.real
def test_an_old_pe_at_no_address_is_refused_and_the_stream_goes_on(cluster):
    """By the old wire's own words."""
    cluster.start_master()
    for address in ("..", "%00", "", "a" * 64):
        assert registered(cluster, address, 9000) == (406, b"Invalid data type!")
    pe = LegacyPe(cluster.port, "img")
    assert pe.registered.acquire(timeout=10)
    push_raw("127.0.0.1", cluster.data_port, b"003imgfirst")
    wait_until(lambda: pe.received == [b"first"], "the message")
    pe.close()


@pytest.mark.real
def test_a_pe_of_ours_at_no_address_is_refused(cluster):
    """Nobody could dial it."""
    cluster.start_master()
    beat = {"id": "0123456789ab", "c_name": "s", "host": "..", "port": 9000}
    status, text = request(cluster.port, "POST", "/v1/beat", json.dumps(beat))
    assert (status, b"neither an address" in text, cluster.pes()) == (409, True, [])


@pytest.mark.parametrize("host", ["..", "\0"])
def test_a_message_for_an_address_that_is_none_waits_again(host):
    """Whoever let it be registered: the dispatcher goes on, without that PE."""
    queue, registry = MessageQueue(QueueLimits(), None), Registry()
    queue.add_message("img", b"first")
    registry.register_idle(RegisteredPe(Address("a", host, 9000), "img", "", 0.0, "idle"))
    asyncio.run(Dispatcher("img", queue, registry, "")._deliver_to_legacy_pes())
    assert (queue.length("img"), registry.idle) == (1, {})
    assert taken(queue, "img", 1) == [b"first"]


def test_a_batch_is_taken_apart_at_its_place(tmp_path):
    """Whoever takes its first message and gives it back, or is killed, loses none of the others."""
    journal = Journal(tmp_path, sync=False)
    queue = MessageQueue(QueueLimits(), journal)
    for first, messages in ((0, [b"a", b"b", b"c"]), (3, [b"d"])):
        head, *body = encode_frame(messages, 1, first, 0).buffers
        queue.add("s", head, b"".join(body))
    entry, message = queue.take_message("s")
    again = Journal(tmp_path, sync=False)
    found = MessageQueue(QueueLimits(), again)
    queue.put_back("s", entry.key)
    assert (message, taken(queue, "s", 5)) == (b"a", [b"a", b"b", b"c", b"d"])
    assert sorted(taken(found, "s", 4)) == [b"a", b"b", b"c", b"d"]
    journal.close()
    again.close()


@pytest.mark.real
def test_what_the_disk_did_not_take_is_not_acknowledged(cluster):
    """Who sent it is parted from, each time it comes again; a master that is started again takes it."""
    cluster.start_master()
    segment = cluster.folder / "state" / "journal" / "00000001.journal"
    segment.symlink_to("/dev/null")  # where everything can be written, and fdatasync fails
    with Connector(c_name="s", port=cluster.data_port) as connector:
        connector.send_many(numbered(0, 10))
        feeder = connector.feeder
        wait_until(lambda: (feeder.step(), cluster.log().count("nothing is acknowledged") > 1)[1], "the second refusal")
        assert feeder.acked == 0
        assert cluster.stop("master") == 0
        segment.unlink()
        cluster.start_master()
        connector.flush()
        assert feeder.acked == 10
    assert cluster.operator.status()["streams"][0]["queued"] == 10


@pytest.mark.real
def test_a_full_disk_is_told_and_waited_for(cluster):
    """Once a second, not as often as a connector can come back; what it took before stays, and the rest follows."""
    cluster.start_master()
    master, unlimited = cluster.processes["master"].pid, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(master, resource.RLIMIT_FSIZE, (2**20, resource.RLIM_INFINITY))
    with Connector(c_name="s", port=cluster.data_port) as connector:
        connector.send_many(numbered(0, 300, size=10_000))
        feeder = connector.feeder
        wait_until(
            lambda: (feeder.step(), cluster.log().count("the journal takes nothing") > 2)[1], "the third refusal"
        )
        assert cluster.log().count("the journal takes nothing") < 10
        assert 0 < feeder.acked < 105
        resource.prlimit(master, resource.RLIMIT_FSIZE, unlimited)
        connector.flush()
        assert feeder.acked == 300
    assert cluster.operator.status()["streams"][0]["queued"] == 300


def test_at_most_once_through_the_queue_is_refused():
    """In one line that says what to set."""
    with pytest.raises(UsageError, match="set overflow: never") as caught:
        registry.source("stream", {"stream": {"delivery": "at-most-once", "overflow": "full"}})
    assert "\n" not in str(caught.value)


@pytest.mark.real
def test_at_most_once_never_uses_the_queue(env):
    """Where nothing else was said."""
    source = registry.source("stream", {"stream": {"delivery": "at-most-once"}})
    endpoint = source.open(Cell("harmonicio", "stream", 100, 0.0), env)
    assert endpoint.client["overflow"] == "never"
