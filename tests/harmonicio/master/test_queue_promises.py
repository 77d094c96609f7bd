"""The master's queue keeps its promises when a PE is lost, the master is killed, or the disk fails."""

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
from frameworks.harmonicio.engine.wire.control_messages import NodeAddress
from frameworks.harmonicio.engine.wire.frame import encode_frame


def registered(cluster, address, port):
    """Register a legacy PE at an address; return the answer."""
    path = f"/streamRequest?token=None&batch_addr={address}&batch_port={port}&batch_status=0&c_name=img"
    return request(cluster.port, "POST", path)


def taken(queue, stream, most):
    """Take the first messages of a stream, which are done then."""
    found = []
    while len(found) < most and (one := queue.take_message(stream)) is not None:
        queue.done(stream, one[0].key)
        found.append(one[1])
    return found


@pytest.fixture
def deaf():
    """The port of a listener whose backlog is full: connecting to it blocks."""
    with contextlib.ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            sock = opened.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@pytest.mark.real
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_message_that_is_being_sent_to_a_legacy_pe_outlives_the_master(cluster, deaf, end):
    """It is done only once all of it was sent."""
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
def test_a_message_for_a_legacy_pe_that_polled_and_disconnected_waits_again(cluster):
    """It is done only once the answer was sent."""
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
def test_a_legacy_pe_at_an_invalid_address_is_refused_and_the_stream_goes_on(cluster):
    """The answer is the legacy one."""
    cluster.start_master()
    for address in ("..", "%00", "", "a" * 64):
        assert registered(cluster, address, 9000) == (406, b"Invalid data type!")
    pe = LegacyPe(cluster.port, "img")
    assert pe.registered.acquire(timeout=10)
    push_raw("127.0.0.1", cluster.data_port, b"003imgfirst")
    wait_until(lambda: pe.received == [b"first"], "the message")
    pe.close()


@pytest.mark.real
def test_a_heartbeat_with_an_invalid_address_is_refused(cluster):
    """The PE is not registered."""
    cluster.start_master()
    beat = {"id": "0123456789ab", "c_name": "s", "host": "..", "port": 9000}
    status, text = request(cluster.port, "POST", "/v1/beat", json.dumps(beat))
    assert (status, b"neither an address" in text, cluster.pes()) == (409, True, [])


@pytest.mark.parametrize("host", ["..", "\0"])
def test_a_message_for_an_invalid_address_waits_again(host):
    """The dispatcher goes on without that PE."""
    queue, registry = MessageQueue(QueueLimits(), None), Registry()
    queue.add_message("img", b"first")
    registry.register_idle(RegisteredPe(NodeAddress("a", host, 9000), "img", "", 0.0, "idle"))
    asyncio.run(Dispatcher("img", queue, registry, "")._deliver_to_legacy_pes())
    assert (queue.length("img"), registry.idle) == (1, {})
    assert taken(queue, "img", 1) == [b"first"]


def test_a_batch_is_split_in_its_position(tmp_path):
    """Giving its first message back, or a restart, loses none of the others."""
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
def test_messages_that_the_disk_did_not_take_are_not_acknowledged(cluster):
    """Their connector is disconnected each time; a restarted master takes them."""
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
def test_a_full_disk_is_logged_and_tried_again_each_second(cluster):
    """Messages that were queued before stay, and the rest follows once there is space."""
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
    """The error of one line names the setting."""
    with pytest.raises(UsageError, match="set overflow: never") as caught:
        registry.make_source("stream", {"stream": {"delivery": "at-most-once", "overflow": "full"}})
    assert "\n" not in str(caught.value)


@pytest.mark.real
def test_at_most_once_never_uses_the_queue(env):
    """`overflow` is `never` where it was not set."""
    source = registry.make_source("stream", {"stream": {"delivery": "at-most-once"}})
    endpoint = source.open(Cell("harmonicio", "stream", 100, 0.0), env)
    assert endpoint.client["overflow"] == "never"
