"""A cluster of processes behaves as its command and its connectors document."""

import asyncio
import csv
import http.client
import json
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
from processes import LocalCluster, numbered, wait_until

from frameworks.harmonicio.engine.connector import AsyncConnector, Connector
from frameworks.harmonicio.engine.errors import UnreachableError
from frameworks.harmonicio.engine.wire.control_messages import Hello
from frameworks.harmonicio.engine.wire.frame import FrameKind, encode_control, encode_frame

pytestmark = pytest.mark.real


def command(cluster, *arguments):
    """Run the command for a cluster; return (exit code, output)."""
    return command_alone(*arguments, "--master", f"127.0.0.1:{cluster.port}")


def command_alone(*arguments):
    """Run the command without a master; return (exit code, output)."""
    process = subprocess.run(
        [sys.executable, "-m", "frameworks.harmonicio.engine.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return process.returncode, process.stdout + process.stderr


def request(port, path, host="127.0.0.1"):
    connection = http.client.HTTPConnection(host, port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_an_exception_of_the_function_does_not_end_the_pe(running_cluster):
    """Its message counts as failed, the others are processed."""
    running_cluster.submit("Keep")
    (before,) = running_cluster.wait_pes(1)
    with Connector(c_name="s", port=running_cluster.data_port) as connector:
        connector.send_many([b"one", b"bad", b"two"])
        connector.flush()
        assert (connector.feeder.acked, connector.feeder.failed) == (2, 1)
    assert sorted(file.read_bytes() for file in running_cluster.numbers.glob("*.message")) == [b"one", b"two"]
    assert [pe["id"] for pe in running_cluster.pes()] == [before["id"]]
    assert "a bad message" in running_cluster.log()


def test_messages_without_a_pe_wait_in_the_queue_and_are_delivered(running_cluster):
    """Queued and direct messages are each processed once."""
    with Connector(c_name="s", port=running_cluster.data_port) as connector:
        connector.send_many(numbered(0, 5000))
        connector.flush()
        assert connector.feeder.queued == 5000
        running_cluster.submit()
        wait_until(lambda: (connector.feeder.step(), connector.feeder.pes)[1], "a PE")
        connector.send_many(numbered(5000, 5000))
    wait_until(lambda: len(running_cluster.processed()) == 10_000, "all messages")
    assert np.array_equal(np.sort(running_cluster.processed()), np.arange(10_000))
    assert running_cluster.operator.status()["totals"]["delivered_total"] == 5000


def test_a_stopped_pe_drains_and_is_replaced(running_cluster):
    """No message is lost, none is processed twice."""
    running_cluster.submit()
    (pe,) = running_cluster.wait_pes(1)
    with Connector(c_name="s", port=running_cluster.data_port, overflow="never") as connector:
        for first in range(0, 200_000, 10_000):
            connector.send_many(numbered(first, 10_000))
            if first == 100_000:
                assert command(running_cluster, "stop", "--pe", pe["id"])[0] == 0
    assert np.array_equal(np.sort(running_cluster.processed()), np.arange(200_000))
    wait_until(lambda: [one["id"] for one in running_cluster.pes()] not in ([], [pe["id"]]), "another PE")


def test_at_most_once_never_sends_anything_twice(running_cluster):
    """Messages that were unacknowledged at a killed PE have failed."""
    running_cluster.submit()
    running_cluster.wait_pes(1)
    with Connector(c_name="s", port=running_cluster.data_port, delivery="at-most-once", overflow="never") as connector:
        for first in range(0, 100_000, 10_000):
            connector.send_many(numbered(first, 10_000))
            if first == 50_000:
                os.kill(running_cluster.pe_pids()[0], signal.SIGKILL)
        connector.flush()
        acked, failed = connector.feeder.acked, connector.feeder.failed
    found = running_cluster.processed()
    assert (acked + failed, len(np.unique(found))) == (100_000, len(found))
    assert acked <= len(found)


def test_an_asyncio_connector_sends_from_many_coroutines(running_cluster):
    """All messages are processed once."""

    async def feed():
        async with AsyncConnector(c_name="s", port=running_cluster.data_port) as connector:
            await asyncio.gather(*(connector.send_many(numbered(first, 1000)) for first in range(0, 20_000, 1000)))
            await connector.send(numbered(20_000, 1)[0])
            await connector.flush()
            return connector.feeder.acked

    running_cluster.submit(num=2)
    running_cluster.wait_pes(2)
    assert asyncio.run(feed()) == 20_001
    assert np.array_equal(np.sort(running_cluster.processed()), np.arange(20_001))


def test_without_a_master_a_connector_raises_after_its_timeout():
    """The error is one line."""
    with (
        pytest.raises(UnreachableError, match="nothing was taken"),
        Connector(c_name="s", port=1, timeout=0.3) as connector,
    ):
        connector.send(b"x")


def test_the_command_submits_lists_and_stops_pes(running_cluster):
    """PEs are started, shown, and ended."""
    settings = json.dumps({"folder": str(running_cluster.numbers)})
    code, _ = command(
        running_cluster, "submit", "s", "--image", "python:pe_functions:Record", "--num", "2", "--settings", settings
    )
    assert code == 0
    running_cluster.wait_pes(2)
    assert command(running_cluster, "list")[1].count("running") == 2
    assert "s: 2 of 2 PEs, 0 queued" in command(running_cluster, "status")[1]
    assert command(running_cluster, "stop", "s")[0] == 0
    running_cluster.wait_pes(0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["submit", "s", "--settings", "{"], "not JSON"), (["stop", "--pe", "nobody"], "not known")],
    ids=["settings", "unknown PE"],
)
def test_an_error_of_the_command_is_one_line(cluster, arguments, says):
    """The exit code is 2 or 3."""
    cluster.start_master()
    code, said = command(cluster, *arguments)
    assert code in (2, 3)
    assert says in said
    assert said.count("\n") == 1


def test_an_image_that_is_not_allowed_is_shown_as_a_problem(running_cluster):
    """The allow-list of the worker decides."""
    running_cluster.operator.submit({"c_name": "evil", "image": "python:os:system"})
    said = wait_until(lambda: running_cluster.operator.status()["streams"][0]["problem"], "the problem")
    assert "not among the images" in said
    assert running_cluster.pes() == []


def test_health_readiness_and_metrics_are_served(cluster):
    """A master is ready once a worker has reported."""
    cluster.start_master()
    assert request(cluster.port, "/health") == (200, "ok\n")
    assert request(cluster.port, "/ready")[0] == 503
    cluster.start_worker()
    assert request(cluster.port, "/ready")[0] == 200
    assert request(cluster.worker_port, "/ready")[0] == 200
    cluster.submit()
    cluster.wait_pes(1)
    text = request(cluster.port, "/metrics")[1]
    assert "harmonicio_workers 1.0\n" in text
    assert 'harmonicio_processed_total{pe="' in text
    assert "harmonicio_worker_pes 1.0\n" in request(cluster.worker_port, "/metrics")[1]
    samples = json.loads(request(cluster.port, "/v1/samples")[1])["samples"]
    assert len(samples[0]) == 5


def test_samples_of_every_second_are_printed_as_a_table(running_cluster):
    """It has queue, leases, PEs and workers."""
    with Connector(c_name="waits", port=running_cluster.data_port) as connector:
        connector.send(b"a message")
    running_cluster.submit()
    (pe,) = running_cluster.wait_pes(1)
    log = str(running_cluster.folder / "log")
    table = wait_until(
        lambda: f"state,{pe['id']},running" in (text := command_alone("samples", log)[1]) and text, "a sample of the PE"
    )
    last = {tuple(row[1:3]): row[3] for row in csv.reader(table.splitlines())}
    assert last["queued", "waits"] == "1"
    assert {"leases", "state", "processed", "waiting", "cpu", "pes"} <= {series for series, _ in last}
    assert command_alone("samples", "nowhere")[0] == 2


def test_a_cluster_works_over_ipv6(tmp_path):
    """The test is skipped on machines without IPv6."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as problem:
        pytest.skip(f"no IPv6 on this machine: {problem}")
    cluster = LocalCluster(tmp_path, "::1")
    try:
        cluster.start_master()
        cluster.start_worker()
        cluster.submit()
        cluster.wait_pes(1)
        with Connector(c_name="s", host="::1", port=cluster.data_port) as connector:
            connector.send_many(numbered(0, 1000))
        wait_until(lambda: len(cluster.processed()) >= 1000, "all messages")
        assert len(cluster.processed()) == 1000
    finally:
        cluster.stop("worker")
        cluster.stop("master")


def test_with_the_resource_manager_requests_are_packed_onto_workers(cluster):
    """They are packed by size; one that fits nowhere is refused."""
    cluster.start_master("--irm", "on")
    cluster.start_worker()
    body = {
        "c_name": "s",
        "image": "python:pe_functions:Record",
        "num": 2,
        "cpu_share": 0.3,
        "settings": {"folder": str(cluster.numbers)},
    }
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=10)
    connection.request("POST", "/containerRequest?token=None&type=new_container", json.dumps(body))
    assert connection.getresponse().read() == b"Containers queued for creation!"
    cluster.wait_pes(2)
    irm = cluster.operator.status()["irm"]
    assert (irm["profile"], irm["bins"][0]["items"]) == ("paper", [0.3, 0.3])
    connection.request(
        "POST", "/containerRequest?token=None&type=new_container", json.dumps({**body, "cpu_share": 1.5})
    )
    assert connection.getresponse().read() == b"Containers queued for creation!"
    connection.close()
    wait_until(lambda: cluster.operator.status()["irm"]["refused"], "the refusal")


def test_a_restarted_master_remembers_the_submitted_streams(running_cluster):
    """It finds the PEs that went on."""
    running_cluster.submit()
    (before,) = running_cluster.wait_pes(1)
    running_cluster.kill("master")
    running_cluster.start_master()
    (after,) = running_cluster.wait_pes(1)
    assert after["id"] == before["id"]
    assert running_cluster.operator.status()["streams"][0]["wanted"] == 1


def test_a_pe_that_drains_is_shown_as_draining(running_cluster):
    """Connectors get no lease of it any more; it ends once its message is processed."""
    running_cluster.submit("Hold")
    running_cluster.wait_pes(1)
    with Connector(c_name="s", port=running_cluster.data_port, overflow="never") as connector:
        connector.send(b"x")
        running_cluster.operator.withdraw("s")
        assert wait_until(lambda: [pe["state"] for pe in running_cluster.pes()] == ["draining"], "the state")
        (running_cluster.numbers / "go").touch()
    assert wait_until(lambda: not running_cluster.pes(), "the end")


def test_a_frame_that_comes_again_is_counted_once(cluster):
    """The total of queued messages is that of the queue."""
    cluster.start_master()
    frame = b"".join(encode_frame([b"x"], 1, 0, 0).buffers)
    with socket.create_connection(("127.0.0.1", cluster.data_port), timeout=10) as sock:
        sock.sendall(encode_control(FrameKind.HELLO, Hello("connector", "s", 1)) + 3 * frame)
        wait_until(lambda: cluster.operator.status()["totals"]["queued_total"], "the message")
        other = b"".join(encode_frame([b"y"], 1, 1, 0).buffers)
        sock.sendall(other)
        wait_until(lambda: cluster.operator.status()["streams"][0]["queued"] == 2, "the other message")
    assert cluster.operator.status()["totals"]["queued_total"] == 2


def test_a_worker_finds_its_master_by_the_environment(cluster):
    """No file is needed for it."""
    cluster.start_master()
    cluster.environment |= {"HARMONICIO_MASTER_HOST": "127.0.0.1", "HARMONICIO_MASTER_PORT": str(cluster.port)}
    cluster._start("worker", ["worker", "--port", str(cluster.worker_port)])
    (worker,) = wait_until(lambda: cluster.operator.status()["workers"], "the worker")
    assert str(cluster.worker_port) in str(worker)
