"""A system of processes does what its command and its connectors say."""

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
from processes import Stand, numbered, until

from frameworks.harmonicio.engine.connector import AsyncConnector, Connector
from frameworks.harmonicio.engine.errors import Unreachable

pytestmark = pytest.mark.real


def command(stand, *arguments):
    """(exit code, output) of the command."""
    return command_alone(*arguments, "--master", f"127.0.0.1:{stand.port}")


def command_alone(*arguments):
    """The same without a master."""
    process = subprocess.run(
        [sys.executable, "-m", "frameworks.harmonicio.engine.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return process.returncode, process.stdout + process.stderr


def asked(port, path, host="127.0.0.1"):
    connection = http.client.HTTPConnection(host, port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_an_exception_of_the_function_does_not_end_the_pe(standing):
    """Its message is counted as failed, the others are processed."""
    standing.submit("Keep")
    (before,) = standing.wait_pes(1)
    with Connector(c_name="s", port=standing.data_port) as connector:
        connector.send_many([b"one", b"bad", b"two"])
        connector.flush()
        assert (connector.feeder.acked, connector.feeder.failed) == (2, 1)
    assert sorted(file.read_bytes() for file in standing.numbers.glob("*.message")) == [b"one", b"two"]
    assert [pe["id"] for pe in standing.pes()] == [before["id"]]
    assert "a bad message" in standing.log()


def test_messages_that_nobody_can_take_wait_in_the_queue_and_are_delivered(standing):
    """Queued and direct ones, each once: what the queue had is not taken for done."""
    with Connector(c_name="s", port=standing.data_port) as connector:
        connector.send_many(numbered(0, 5000))
        connector.flush()
        assert connector.feeder.queued == 5000
        standing.submit()
        until(lambda: (connector.feeder.step(), connector.feeder.pes)[1], "a PE")
        connector.send_many(numbered(5000, 5000))
    until(lambda: len(standing.processed()) == 10_000, "all messages")
    assert np.array_equal(np.sort(standing.processed()), np.arange(10_000))
    assert standing.operator.status()["totals"]["delivered_total"] == 5000


def test_a_stopped_pe_drains_and_is_replaced(standing):
    """Nothing is lost, nothing comes twice."""
    standing.submit()
    (pe,) = standing.wait_pes(1)
    with Connector(c_name="s", port=standing.data_port, overflow="never") as connector:
        for first in range(0, 200_000, 10_000):
            connector.send_many(numbered(first, 10_000))
            if first == 100_000:
                assert command(standing, "stop", "--pe", pe["id"])[0] == 0
    assert np.array_equal(np.sort(standing.processed()), np.arange(200_000))
    until(lambda: [one["id"] for one in standing.pes()] not in ([], [pe["id"]]), "another PE")


def test_at_most_once_never_sends_anything_twice(standing):
    """What was on its way to a PE that was killed has failed."""
    standing.submit()
    standing.wait_pes(1)
    with Connector(c_name="s", port=standing.data_port, delivery="at-most-once", overflow="never") as connector:
        for first in range(0, 100_000, 10_000):
            connector.send_many(numbered(first, 10_000))
            if first == 50_000:
                os.kill(standing.pe_pids()[0], signal.SIGKILL)
        connector.flush()
        acked, failed = connector.feeder.acked, connector.feeder.failed
    found = standing.processed()
    assert (acked + failed, len(np.unique(found))) == (100_000, len(found))
    assert acked <= len(found)


def test_a_connector_for_coroutines_does_the_same(standing):
    """Many at once, over one loop."""

    async def feed():
        async with AsyncConnector(c_name="s", port=standing.data_port) as connector:
            await asyncio.gather(*(connector.send_many(numbered(first, 1000)) for first in range(0, 20_000, 1000)))
            await connector.send(numbered(20_000, 1)[0])
            await connector.flush()
            return connector.feeder.acked

    standing.submit(num=2)
    standing.wait_pes(2)
    assert asyncio.run(feed()) == 20_001
    assert np.array_equal(np.sort(standing.processed()), np.arange(20_001))


def test_a_connector_without_a_master_says_so():
    """After its timeout, in one line."""
    with pytest.raises(Unreachable, match="nothing was taken"), Connector(c_name="s", port=1, timeout=0.3) as connector:
        connector.send(b"x")


def test_the_command_submits_lists_and_stops(standing):
    """PEs come, are shown, and go."""
    settings = json.dumps({"folder": str(standing.numbers)})
    code, _ = command(
        standing, "submit", "s", "--image", "python:pe_functions:Record", "--num", "2", "--settings", settings
    )
    assert code == 0
    standing.wait_pes(2)
    assert command(standing, "list")[1].count("running") == 2
    assert "s: 2 of 2 PEs, 0 queued" in command(standing, "status")[1]
    assert command(standing, "stop", "s")[0] == 0
    standing.wait_pes(0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["submit", "s", "--settings", "{"], "not JSON"), (["stop", "--pe", "nobody"], "not known")],
    ids=["settings", "unknown PE"],
)
def test_the_command_says_what_is_wrong(stand, arguments, says):
    """In one line."""
    stand.start_master()
    code, said = command(stand, *arguments)
    assert code in (2, 3)
    assert says in said
    assert said.count("\n") == 1


def test_an_image_that_may_not_run_is_a_problem_that_is_shown(standing):
    """By the worker's allow-list."""
    standing.operator.submit({"c_name": "evil", "image": "python:os:system"})
    said = until(lambda: standing.operator.status()["streams"][0]["problem"], "the problem")
    assert "not among the images" in said
    assert standing.pes() == []


def test_health_readiness_and_metrics(stand):
    """A master is ready once a worker has reported."""
    stand.start_master()
    assert asked(stand.port, "/health") == (200, "ok\n")
    assert asked(stand.port, "/ready")[0] == 503
    stand.start_worker()
    assert asked(stand.port, "/ready")[0] == 200
    assert asked(stand.worker_port, "/ready")[0] == 200
    stand.submit()
    stand.wait_pes(1)
    text = asked(stand.port, "/metrics")[1]
    assert "harmonicio_workers 1\n" in text
    assert 'harmonicio_processed_total{pe="' in text
    assert "harmonicio_worker_pes 1\n" in asked(stand.worker_port, "/metrics")[1]
    samples = json.loads(asked(stand.port, "/v1/samples")[1])["samples"]
    assert len(samples[0]) == 5


def test_every_second_is_sampled_and_can_be_had_as_a_table(standing):
    """Queue, leases, PEs, workers."""
    with Connector(c_name="waits", port=standing.data_port) as connector:
        connector.send(b"a message")
    standing.submit()
    (pe,) = standing.wait_pes(1)
    log = str(standing.folder / "log")
    table = until(
        lambda: f"state,{pe['id']},running" in (text := command_alone("samples", log)[1]) and text, "a sample of the PE"
    )
    last = {tuple(row[1:3]): row[3] for row in csv.reader(table.splitlines())}
    assert last["queued", "waits"] == "1"
    assert {"leases", "state", "processed", "waiting", "cpu", "pes"} <= {series for series, _ in last}
    assert command_alone("samples", "nowhere")[0] == 2


def test_everything_works_over_ipv6(tmp_path):
    """Where this machine has it."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as problem:
        pytest.skip(f"no IPv6 on this machine: {problem}")
    stand = Stand(tmp_path, "::1")
    try:
        stand.start_master()
        stand.start_worker()
        stand.submit()
        stand.wait_pes(1)
        with Connector(c_name="s", host="::1", port=stand.data_port) as connector:
            connector.send_many(numbered(0, 1000))
        until(lambda: len(stand.processed()) >= 1000, "all messages")
        assert len(stand.processed()) == 1000
    finally:
        stand.stop("worker")
        stand.stop("master")


def test_with_the_resource_manager_requests_are_packed_onto_workers(stand):
    """By their size; one that fits nowhere is refused, and what waits in a queue brings more PEs."""
    stand.start_master("--irm", "on")
    stand.start_worker()
    body = {
        "c_name": "s",
        "image": "python:pe_functions:Record",
        "num": 2,
        "cpu_share": 0.3,
        "settings": {"folder": str(stand.numbers)},
    }
    connection = http.client.HTTPConnection("127.0.0.1", stand.port, timeout=10)
    connection.request("POST", "/containerRequest?token=None&type=new_container", json.dumps(body))
    assert connection.getresponse().read() == b"Containers queued for creation!"
    stand.wait_pes(2)
    irm = stand.operator.status()["irm"]
    assert (irm["profile"], irm["bins"][0]["items"]) == ("paper", [0.3, 0.3])
    connection.request(
        "POST", "/containerRequest?token=None&type=new_container", json.dumps({**body, "cpu_share": 1.5})
    )
    assert connection.getresponse().read() == b"Containers queued for creation!"
    connection.close()
    until(lambda: stand.operator.status()["irm"]["refused"], "the refusal")


def test_a_master_that_is_started_again_remembers_what_was_wanted(standing):
    """And finds the PEs that went on."""
    standing.submit()
    (before,) = standing.wait_pes(1)
    standing.kill("master")
    standing.start_master()
    (after,) = standing.wait_pes(1)
    assert after["id"] == before["id"]
    assert standing.operator.status()["streams"][0]["wanted"] == 1
