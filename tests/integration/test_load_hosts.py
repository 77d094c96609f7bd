"""Workers of the load on hosts of a site: they wait for runs, send one schedule together, and are missed when they are
gone.
"""

import contextlib
import signal
import time

import msgpack
import psutil
import pytest
import yaml
import zmq
from bench_command import Harness, wait_until
from scenario_files import read_scenario

from bench.config.validation import read_address
from bench.errors import UsageError
from bench.plugins.scenario_check import scenario_on_site
from bench.plugins.site_file import read_site_file
from bench.services.ports import free_ports
from bench.storage.run_folder import read_results, read_run, read_trials

SCENARIO = """
name: hosts
systems: [python/kafka]
grid: {message_size: [100 B]}
search: {strategy: bisection, start: 200 /s, lowest: 190 /s, highest: 200 /s, budget: 90 s}
timing: {settle: 500 ms, window: 2 s}
"""


def test_a_site_says_how_many_workers_there_are(tmp_path):
    """The scenario's own count is of this machine."""
    scenario, site = files(tmp_path, "kafka-1:9092", 5557)
    assert scenario_on_site(read_scenario(scenario), read_site_file(site)).load.workers == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("load.by=inline", "one thread of this machine"),
    ],
)
def test_what_workers_elsewhere_cannot_do_is_refused(tmp_path, change, said):
    """In one line, before anything starts."""
    scenario, site = files(tmp_path, "kafka-1:9092", 5557)
    with pytest.raises(UsageError, match=said):
        scenario_on_site(read_scenario(scenario, [change]), read_site_file(site))


@pytest.mark.parametrize("text", ["10.0.0.5", ":5557", "a:b", "10.0.0.5:0", "a b:5557"])
def test_a_wrong_address_is_one_line(text):
    """The error shows a valid address."""
    with pytest.raises(UsageError, match="allowed: host:port, such as"):
        read_address(text)


@pytest.fixture
def deployed(tmp_path, kafka, request):
    """Two workers that wait; a harness, them, and the words that start a run of theirs. Nothing of them is left."""
    (port,) = free_ports(1)
    scenario, site = files(tmp_path, kafka.address, port)
    harness = Harness(tmp_path, request.config.rootpath)
    workers = [harness.started("worker", f"127.0.0.1:{port}") for _ in range(2)]
    yield harness, workers, ("run", str(scenario), "--site", str(site), "--out")
    for worker in workers:
        worker.send_signal(signal.SIGINT)
    said = [worker.communicate(timeout=30)[0] for worker in workers]
    assert all("waiting for a run" in text for text in said)
    assert harness.running() == []


def begun(harness, words, folder):
    """A run that is in the middle of a long trial."""
    run = harness.started(*words, str(folder), "--set=timing.window=5s")
    wait_until(
        lambda: any(b"measuring" in status.read_bytes() for status in folder.glob("hosts-*/status.json")),
        90,
        "no trial",
    )
    return run


@pytest.mark.real
def test_two_workers_send_one_schedule(tmp_path, deployed):
    """Every message arrives once, from two producers; they wait for the next run; that one is gone ends a trial, not
    the run.
    """
    harness, workers, words = deployed
    code, said = harness.done(*words, str(tmp_path))
    assert code == 0, said
    (folder,) = tmp_path.glob("hosts-*")
    for trial in (entry.measurement for entry in read_trials(folder)):
        assert (trial.lost, trial.duplicated, trial.corrupted) == (0, 0, 0)
        assert (
            trial.sent == trial.processed == round(trial.planned.rate * (trial.planned.settle + trial.planned.window))
        )
    assert read_run(folder).scenario.load.workers == 2
    assert [result.status for result in read_results(folder)] == ["lower-bound"]
    again = begun(harness, words, tmp_path / "again")
    for part in psutil.Process(workers[0].pid).children():
        part.kill()
    said, _ = again.communicate(timeout=150)
    assert again.returncode == 0, said
    (folder,) = tmp_path.glob("again/hosts-*")
    trials = [entry.measurement for entry in read_trials(folder)]
    assert "1 of 2 workers of the load are gone" in next(trial.note for trial in trials if trial.ended == "load died")


def test_workers_serve_ports_of_their_hosts_and_a_shared_folder(tmp_path, request):
    """One command starts both. Each takes one of the addresses that the site file gives the load hosts, and sends its
    share; every message arrives once, and both end with the command.
    """
    port, here, first, second = free_ports(4)
    scenario, site = files(tmp_path, "unused:9092", port)
    scenario.write_text(SCENARIO.replace("python/kafka", "python/tcp, python/files"))
    (tmp_path / "shared").mkdir()
    site.write_text(
        yaml.safe_dump(
            {
                "tcp": {"listen": f"127.0.0.1:{here}", "load_hosts": [f"127.0.0.1:{first}", f"127.0.0.1:{second}"]},
                "files": {"folder": str(tmp_path / "shared"), "load_hosts": True},
                "load": {"listen": f"127.0.0.1:{port}", "workers": 2},
                "shared_machine": True,
            }
        )
    )
    harness = Harness(tmp_path, request.config.rootpath)
    host = harness.started("worker", f"127.0.0.1:{port}", "--processes", "2")
    try:
        code, said = harness.done("run", str(scenario), "--site", str(site), "--out", str(tmp_path))
    finally:
        host.send_signal(signal.SIGINT)
        waited, _ = host.communicate(timeout=30)
    assert code == 0, said
    assert "waiting for a run" in waited
    (folder,) = tmp_path.glob("hosts-*")
    entries = list(read_trials(folder))
    assert {entry.cell.source for entry in entries} == {"tcp", "files"}
    trials = [entry.measurement for entry in entries]
    assert all((trial.lost, trial.duplicated, trial.corrupted) == (0, 0, 0) for trial in trials)
    assert all(trial.sent == trial.processed > 0 for trial in trials)
    assert list((tmp_path / "shared").iterdir()) == []
    assert harness.running() == []


@pytest.mark.real
def test_workers_of_a_run_that_was_killed_join_the_next(tmp_path, deployed):
    """The killed run has sent them no end."""
    harness, _, words = deployed
    first = begun(harness, words, tmp_path / "first")
    first.kill()
    first.communicate()
    code, said = harness.done(*words, str(tmp_path / "second"))
    assert code == 0, said
    (folder,) = tmp_path.glob("second/hosts-*")
    assert [result.status for result in read_results(folder)] == ["lower-bound"]


def test_a_worker_whose_master_went_after_the_greeting_joins_the_next(tmp_path, request):
    """It had no heartbeat yet, whose absence it could notice, and its connection outlives the master's process."""
    (port,) = free_ports(1)
    harness = Harness(tmp_path, request.config.rootpath)
    worker = harness.started("worker", f"127.0.0.1:{port}")
    try:
        with greeted(port) as first:
            pass
        with greeted(port) as second:
            assert second != first
    finally:
        worker.send_signal(signal.SIGINT)
        said, _ = worker.communicate(timeout=30)
    assert said.count("waiting for a run") == 2


@contextlib.contextmanager
def greeted(port):
    """The name of a worker that a master of Locust's protocol has greeted; then the master is gone."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as master:
        master.linger = 1000
        master.bind(f"tcp://127.0.0.1:{port}")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if not master.poll(1000):
                continue
            name, message = master.recv_multipart()
            if msgpack.unpackb(message)[0] == "client_ready":
                master.send_multipart([name, msgpack.packb(("ack", {"index": 0}, name.decode()))])
                yield name
                return
        pytest.fail("no worker came")


def files(folder, bootstrap, port):
    """A scenario, and a site whose load is elsewhere."""
    scenario, site = folder / "hosts.yaml", folder / "site.yaml"
    scenario.write_text(SCENARIO)
    site.write_text(
        yaml.safe_dump(
            {
                "kafka": {"bootstrap": bootstrap},
                "load": {"listen": f"127.0.0.1:{port}", "workers": 2},
                "shared_machine": True,
            }
        )
    )
    return scenario, site
