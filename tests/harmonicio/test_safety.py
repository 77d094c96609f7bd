"""Invalid data on any port crashes nothing and leaks nothing, and no request passes without its token."""

import http.client
import os
import random
import socket
from html import escape

import psutil
import pytest
from crc32c import crc32c
from processes import LocalCluster, numbered, wait_until

from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.errors import RefusedError
from frameworks.harmonicio.engine.operator_client import OperatorClient
from frameworks.harmonicio.engine.wire.control_messages import Hello
from frameworks.harmonicio.engine.wire.frame import (
    EQUAL,
    SHARED,
    FrameKind,
    encode_control,
    encode_frame,
    encode_header,
)

pytestmark = pytest.mark.real
BROKEN = 10_000
GROWTH = 32 * 2**20
"""Bytes; an allocator keeps some of what passed through."""


def thrown(port, data, *, answer=False):
    """Send bytes over a new connection, and read the answer if asked to."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            while answer and sock.recv(65536):
                pass
    except OSError:
        pass  # the peer closed it, as it should


def broken_frames(chance):
    """Return frames with wrong bits, lengths, kinds, orders or bodies; or bytes that are not a frame."""
    hello = encode_control(FrameKind.HELLO, Hello("connector", "s", 1, ""))
    whole = b"".join(encode_frame([b"x" * chance.randrange(1, 400)] * chance.randrange(1, 5), 1, 0, 0).buffers)
    flipped = bytearray(hello + whole)
    flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
    cut_hello, cut_frame = hello[: chance.randrange(len(hello))], whole[: chance.randrange(len(whole))]
    too_long = encode_header(FrameKind.DATA, 2**32 - 1, 0, count=2**31)
    return chance.choice([
        bytes(flipped), whole, cut_hello, hello + cut_frame, hello + hello, hello + too_long,
        hello + encode_header(FrameKind.DATA, 10, 0, count=0), encode_header(FrameKind.HELLO, 20, 0) + b"{" * 20,
        encode_control(FrameKind.HELLO, None), chance.randbytes(chance.randrange(1, 300)), b"999" + b"n" * 10, b"abc",
        b"003s", hello + encode_control(FrameKind.ACK), hello + encode_control(FrameKind.WELCOME),
    ])  # fmt: skip


def broken_requests(chance):
    """Return an HTTP request with something wrong."""
    verb = chance.choice(["GET", "POST", "PUT", "DELETE", "BREW", "\x00"])
    path = chance.choice(
        [
            "/status",
            "/streamRequest",
            "/messagesQuery",
            "/v1/beat",
            "/v1/streams",
            "/docker",
            "/",
            "/v1/pes",
            "//",
            "/%00",
        ]
    )
    query = chance.choice(
        ["", "?token=None", "?token=None&c_name=%FF", "?token=None&command=create", "?" + "a" * 3000, "?a=b&&=&="]
    )
    body = chance.choice(
        ["", "[" * 500, "{'a': 1}", '{"id": 1}', "__import__('os')", '{"c_name": "x", "num": -1}', "\x00" * 50]
    )
    length = chance.choice([len(body), len(body), 0, 10**12, -1])
    text = f"{verb} {path}{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    return text.encode(errors="replace")


def test_a_connector_that_asks_for_leases_and_reads_none_is_disconnected(running_cluster):
    """What waits for it would fill the master's memory."""
    running_cluster.submit(num=4)
    running_cluster.wait_pes(4)
    renewals = encode_control(FrameKind.RENEW) * 1_000_000
    with socket.create_connection(("127.0.0.1", running_cluster.data_port), timeout=60) as sock:
        sock.sendall(encode_control(FrameKind.HELLO, Hello("connector", "s", 1, "")))
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            sock.sendall(renewals)
    assert "it does not read" in running_cluster.log()


def test_ten_thousand_broken_frames_and_requests_neither_end_a_process_nor_fill_its_memory(running_cluster):
    """Master, worker and PE serve as before."""
    running_cluster.submit()
    (pe,) = running_cluster.wait_pes(1)
    chance = random.Random(406)
    ports = [
        (running_cluster.data_port, broken_frames),
        (pe["port"], broken_frames),
        (running_cluster.port, broken_requests),
        (running_cluster.worker_port, broken_requests),
    ]
    pids = [
        running_cluster.processes["master"].pid,
        running_cluster.processes["worker"].pid,
        *running_cluster.pe_pids(),
    ]
    for number in range(BROKEN // 5):
        port, make = ports[number % 4]
        thrown(port, make(chance))
    before = {pid: psutil.Process(pid).memory_info().rss for pid in pids}
    for number in range(BROKEN):
        port, make = ports[number % 4]
        thrown(port, make(chance), answer=number % 50 == 0)
    grown = {pid: psutil.Process(pid).memory_info().rss - size for pid, size in before.items()}
    assert max(grown.values()) < GROWTH
    assert all(process.poll() is None for process in running_cluster.processes.values())
    with Connector(c_name="s", port=running_cluster.data_port) as connector:
        connector.send_many(numbered(10**6, 1000))
    assert set(range(10**6, 10**6 + 1000)) <= set(running_cluster.processed().tolist())


@pytest.mark.parametrize(
    ("flags", "count"), [(SHARED, 1), (SHARED | EQUAL, 0), (4, 1)], ids=["shared", "none", "unknown"]
)
def test_a_frame_that_no_pe_would_accept_is_not_queued(cluster, flags, count):
    """It would block everything behind it for ever."""
    cluster.start_master()
    hello, body = (
        encode_control(FrameKind.HELLO, Hello("connector", "s", 1, "")),
        (12).to_bytes(4, "little") + bytes(12),
    )
    thrown(
        cluster.data_port,
        hello + encode_header(FrameKind.DATA, 16, crc32c(body), flags=flags, count=count) + body,
        answer=True,
    )
    wait_until(lambda: "a connection to the data port was closed" in cluster.log(), "the refusal")
    assert (cluster.operator.status()["streams"], "Traceback" in cluster.log()) == ([], False)


def test_a_legacy_message_has_the_same_size_limit_as_others(cluster):
    """Its name does not count."""
    (cluster.folder / "small.yaml").write_text("message_bytes: 1000\n")
    cluster.start_master("--config", str(cluster.folder / "small.yaml"))
    for size in (1001, 1000):
        thrown(cluster.data_port, b"001s" + bytes(size), answer=True)
    wait_until(lambda: "a message of 1001 bytes; at most 1000" in cluster.log(), "the refusal")
    assert wait_until(lambda: cluster.operator.status()["totals"]["queue_bytes"], "the other") == 1000


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A master and a worker with tokens, for all tests that only see them refuse something."""
    cluster = LocalCluster(tmp_path_factory.mktemp("guarded"))
    try:
        yield start_guarded(cluster)
    finally:
        for role in ("worker", "master"):
            if role in cluster.processes:
                cluster.stop(role)


@pytest.fixture
def own_guarded(cluster):
    """A master and a worker with tokens, for one test."""
    return start_guarded(cluster)


def start_guarded(cluster):
    """Start the master and the worker of a cluster with tokens; return the cluster."""
    (cluster.folder / "tokens.yaml").write_text("tokens: {operator: o, worker: w, pe: p, connector: c}\n")
    cluster.operator = OperatorClient("127.0.0.1", cluster.port, "o")
    cluster.start_master("--config", str(cluster.folder / "tokens.yaml"))
    worker = "tokens: {operator: o, worker: w, pe: p, connector: c}\nmaster_port: %d\n"
    (cluster.folder / "worker.yaml").write_text(worker % cluster.port)
    cluster.start_worker("--config", str(cluster.folder / "worker.yaml"))
    return cluster


def test_with_its_tokens_a_cluster_works(own_guarded):
    """Messages are processed."""
    own_guarded.submit()
    own_guarded.wait_pes(1)
    with Connector(c_name="s", port=own_guarded.data_port, token="c") as connector:
        connector.send_many(numbered(0, 100))
    assert own_guarded.processed().tolist() == list(range(100))


@pytest.mark.parametrize("token", ["", "o", "x"])
def test_a_connector_without_its_token_is_refused(guarded, token):
    """The connector raises the refusal."""
    with (
        pytest.raises(RefusedError, match="token"),
        Connector(c_name="s", port=guarded.data_port, token=token) as connector,
    ):
        connector.send(b"x" * 8)


@pytest.mark.parametrize(
    ("verb", "path"),
    [("GET", "/v1/status"), ("POST", "/v1/streams"), ("DELETE", "/v1/streams?c_name=s"), ("POST", "/v1/beat"),
     ("GET", "/"), ("PUT", "/status?token=None"), ("GET", "/v1/samples"), ("GET", "/v1/trace")],
)  # fmt: skip
def test_a_request_without_its_token_is_refused(guarded, verb, path):
    """Every route answers 401."""
    connection = http.client.HTTPConnection("127.0.0.1", guarded.port, timeout=10)
    connection.request(verb, path, "{}")
    assert connection.getresponse().status == 401
    connection.close()


@pytest.mark.parametrize("token", [b"\xff\xfe", b"w", b""])
def test_a_token_of_any_bytes_is_compared_not_decoded(guarded, token):
    """The answer is 401, and the log has no traceback."""
    connection = http.client.HTTPConnection("127.0.0.1", guarded.port, timeout=10)
    connection.putrequest("GET", "/v1/status")
    connection.putheader("Authorization", b"Bearer " + token)
    connection.endheaders()
    assert connection.getresponse().status == 401
    connection.close()
    assert "Traceback" not in guarded.log()


def test_a_number_of_thousands_of_digits_is_no_port(cluster):
    """A poll with it is refused; Python would refuse to read the number, with an exception."""
    cluster.start_master()
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=10)
    poll = f"/streamRequest?token=None&batch_addr=127.0.0.1&batch_port={'9' * 5000}&batch_status=0&c_name=s"
    connection.request("POST", poll)
    assert connection.getresponse().status == 406
    connection.close()


def test_with_tokens_the_legacy_protocol_is_off(own_guarded):
    """Its routes are missing, and its messages to the queue are refused."""
    connection = http.client.HTTPConnection("127.0.0.1", own_guarded.port, timeout=10)
    connection.request("GET", "/streamRequest?token=None&c_name=s&c_os=u&source=s&digest=d")
    assert connection.getresponse().status == 404
    connection.close()
    thrown(own_guarded.data_port, b"001shello")
    wait_until(lambda: "data port was closed" in own_guarded.log(), "the refusal")
    assert own_guarded.operator.status()["streams"] == []


def test_the_dashboard_escapes_names(cluster):
    """It loads nothing, and has no script."""
    cluster.start_master()
    evil = "<script>alert(1)</script>"
    cluster.operator.submit({"c_name": evil, "num": 1})
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=10)
    connection.request("GET", "/")
    answer = connection.getresponse()
    text = answer.read().decode()
    assert (evil in text, escape(evil) in text, "src=" in text, "http" in text.replace("http-equiv", "")) == (
        False,
        True,
        False,
        False,
    )
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    connection.close()


def test_too_many_requests_are_answered_429(cluster):
    """Requests below the limit are answered 200."""
    (cluster.folder / "slow.yaml").write_text("requests_per_second: 5\n")
    cluster.start_master("--config", str(cluster.folder / "slow.yaml"))
    found = []
    for _ in range(30):
        connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=10)
        connection.request("GET", "/health")
        found.append(connection.getresponse().status)
        connection.close()
    assert set(found) == {200, 429}


def test_listening_beyond_loopback_needs_tokens(cluster):
    """The command ends with one line and exit code 2."""
    cluster._start("master", ["master", "--host", "0.0.0.0", "--port", str(cluster.port)])
    process = cluster.processes.pop("master")
    assert process.wait(30) == 2
    assert "needs tokens" in cluster.log()
    assert os.environ.get("HARMONICIO_INSECURE") is None
