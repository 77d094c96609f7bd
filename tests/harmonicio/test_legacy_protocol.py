"""Peers of 0.2, 0.3 and the IRM era work with ours, and ours with a legacy master."""

import ast
import http.client
import json
import socket
import time
from pathlib import Path

import pytest
import yaml
from legacy_peers import LegacyMaster, LegacyPe, push_raw, request, send_as_legacy_connector
from processes import wait_until

from frameworks.harmonicio.engine.connector import Connector, connect
from frameworks.harmonicio.engine.connector.legacy_master import LegacyMasterConnector

pytestmark = pytest.mark.real
TRANSCRIPTS = yaml.safe_load(Path(__file__).with_name("transcripts.yaml").read_text())


def replayed(port, entry):
    """Send a transcript's bytes; return (status, content type, body) of the answer."""
    head, _, body = entry["send"].partition("\n\n")
    body = body.rstrip("\n")
    data = head.rstrip("\n").replace("{length}", str(len(body))).replace("\n", "\r\n") + "\r\n\r\n" + body
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        sock.sendall(data.encode())
        with http.client.HTTPResponse(sock) as answer:
            answer.begin()
            return answer.status, answer.headers["Content-Type"], answer.read().decode()


def test_the_transcripts_are_answered_as_recorded(cluster):
    """Status, text and content type are the same; texts are JSON and Python literals at once."""
    cluster.start_master()
    for entry in TRANSCRIPTS:
        if "queue" in entry:
            push_raw("127.0.0.1", cluster.data_port, entry["queue"].encode())
            wait_until(lambda: cluster.operator.status()["streams"], "the message")
            continue
        status, kind, body = replayed(cluster.port, entry)
        assert status == entry["status"], entry["about"]
        if "body" in entry:
            assert body == entry["body"].replace("{data_port}", str(cluster.data_port)), entry["about"]
        if "type" in entry:
            assert kind == entry["type"], entry["about"]
        if "keys" in entry:
            assert list(json.loads(body)) == entry["keys"], entry["about"]
            assert ast.literal_eval(body) == json.loads(body)
    assert not Path("/tmp/harmonicio-was-evaluated").exists()


def test_a_legacy_connector_reaches_our_pe(running_cluster):
    """Its raw message is processed unchanged, even one that begins like a frame."""
    running_cluster.submit("Keep", stream="img")
    running_cluster.wait_pes(1)
    messages = [b"hello", b"HIO4" + bytes(200), b"x" * 300_000]
    assert [send_as_legacy_connector(running_cluster.port, "img", message) for message in messages] == [2, 2, 2]
    kept = running_cluster.numbers
    wait_until(lambda: sorted(file.read_bytes() for file in kept.glob("*.message")) == sorted(messages), "the messages")


def test_a_legacy_pe_gets_a_message_that_was_queued_after_it_registered(cluster):
    """It is contacted: the original strands PE and message (reference, 10.2, bug 1)."""
    cluster.start_master()
    pe = LegacyPe(cluster.port, "img")
    assert pe.registered.acquire(timeout=10)
    push_raw("127.0.0.1", cluster.data_port, b"003imgfirst")
    wait_until(lambda: pe.received == [b"first"], "the message")
    assert pe.registered.acquire(timeout=10)
    pe.close()


def test_a_legacy_pe_that_was_assigned_and_not_contacted_is_idle_again(cluster):
    """It gets the next message after its assignment has lapsed."""
    cluster.start_master()
    pe = LegacyPe(cluster.port, "img")
    assert pe.registered.acquire(timeout=10)
    request(cluster.port, "GET", "/streamRequest?token=None&c_name=img&c_os=u&source=s&digest=d")  # and never comes
    push_raw("127.0.0.1", cluster.data_port, b"003imgfirst")
    wait_until(lambda: pe.received == [b"first"], "the message")
    pe.close()


def test_our_connector_feeds_a_legacy_pe(cluster):
    """The master splits batches and sends single messages in the legacy framing."""
    cluster.start_master()
    pe = LegacyPe(cluster.port, "img")
    with Connector(c_name="img", port=cluster.data_port) as connector:
        connector.send_many([b"one", b"two", b"three"])
    wait_until(lambda: len(pe.received) >= 3, "three messages")
    pe.close()
    assert sorted(pe.received) == [b"one", b"three", b"two"]


def test_a_full_queue_answers_406_to_a_legacy_connector(cluster):
    """The legacy connector understands that status."""
    (cluster.folder / "small.yaml").write_text("queue_messages: 2\n")
    cluster.start_master("--config", str(cluster.folder / "small.yaml"))
    assert send_as_legacy_connector(cluster.port, "img", b"one") == 4
    assert send_as_legacy_connector(cluster.port, "img", b"two") == 4
    wait_until(lambda: cluster.operator.status()["streams"][0]["queued"] == 2, "two messages")
    assert send_as_legacy_connector(cluster.port, "img", b"three") == 406


@pytest.fixture
def legacy_master():
    """A master of 0.3.0."""
    master = LegacyMaster()
    yield master
    master.close()


def test_our_connector_falls_back_to_the_legacy_protocol(legacy_master):
    """It sends to the address that the legacy master names, in the legacy framing."""
    with connect("me/img:1", port=legacy_master.port) as connector:
        assert isinstance(connector, LegacyMasterConnector)
        connector.send(b"hello world")
    wait_until(lambda: legacy_master.queue == [b"hello world"], "the message")


def test_our_worker_and_pe_fall_back_to_the_legacy_protocol(cluster, legacy_master):
    """The worker reports in literals; the PE polls, takes the queued message, registers and is contacted."""
    legacy_master.queue.append(b"queued")
    cluster.port = legacy_master.port
    command = [
        "worker",
        "--port",
        str(cluster.worker_port),
        "--master",
        f"127.0.0.1:{legacy_master.port}",
        "--data-ports",
        "0,0",
    ]
    cluster._start("worker", [*command, "--allow", "python:pe_functions:*"])
    wait_until(lambda: legacy_master.reports, "a report")
    assert legacy_master.reports[0]["node_role"] == 2
    body = {"c_name": "img", "image": "python:pe_functions:Keep", "settings": {"folder": str(cluster.numbers)}}
    status, answer = request(cluster.worker_port, "POST", "/docker?token=None&command=create", json.dumps(body))
    assert (status, len(answer)) == (200, 12)
    wait_until(lambda: legacy_master.idle, "a registration")
    assert send_as_legacy_connector(legacy_master.port, "img", b"direct") == 2
    kept = wait_until(lambda: len(found := list(cluster.numbers.glob("*.message"))) == 2 and found, "two messages")
    assert sorted(file.read_bytes() for file in kept) == [b"direct", b"queued"]


def test_a_worker_answers_as_the_legacy_ones_do(running_cluster):
    """Status and list are literals, errors have the legacy texts, and other images are not started."""
    assert request(running_cluster.worker_port, "GET", "/docker?command=status") == (401, b"Token is required.")
    assert request(running_cluster.worker_port, "GET", "/docker?token=None") == (401, b"Command is required.")
    assert request(running_cluster.worker_port, "GET", "/docker?token=None&command=status") == (200, b"[]")
    status, text = request(running_cluster.worker_port, "GET", "/status?token=None")
    assert (status, ast.literal_eval(text.decode())["node_role"]) == (200, 2)
    status, text = request(
        running_cluster.worker_port, "POST", "/docker?token=None&command=create", "{'c_name': 'evil/image'}"
    )
    assert (status, text.startswith(b"Create container error!")) == (400, True)
    status, _ = request(
        running_cluster.worker_port, "GET", "/docker?token=None&command=finished&c_name=x&short_id=0123456789ab"
    )
    assert status == 404


def test_an_empty_message_is_not_lost_at_a_legacy_pe(cluster):
    """It waits for a PE of ours; what is behind it is delivered."""
    cluster.start_master()
    pe = LegacyPe(cluster.port, "img")
    with Connector(c_name="img", port=cluster.data_port) as connector:
        for message in (b"", b"second"):
            connector.send(message)
            connector.flush()
    wait_until(lambda: pe.received == [b"second"], "the message")
    assert pe.registered.acquire(timeout=10)
    verbose = json.loads(request(cluster.port, "GET", "/messagesQuery?token=None&command=verbose")[1])
    assert verbose["MSG"] == {"img": 1}
    pe.close()


def test_the_time_of_an_idle_legacy_pe_is_in_unix_seconds(cluster):
    """As that of the other entries."""
    cluster.start_master()
    pe = LegacyPe(cluster.port, "img")
    assert pe.registered.acquire(timeout=10)
    verbose = json.loads(request(cluster.port, "GET", "/messagesQuery?token=None&command=verbose")[1])
    assert abs(verbose["CONTAINERS"]["img"][0]["last_upd"] - time.time()) < 60
    pe.close()
