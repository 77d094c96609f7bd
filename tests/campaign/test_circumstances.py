"""Circumstances that need no campaign: a name that nobody resolves, a full disk, taken ports, limits, a clock that
steps.
"""

import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.errors import ServiceError
from bench.storage.run_folder import read_results
from bench.system.supervisor import Supervisor
from producers.kafka import server as kafka_server
from producers.kafka.server import start_kafka
from tests.bench_command import Harness, wait_until
from tests.campaign import clocks, disks, invariants, limits
from tests.campaign.subjects import SUBJECTS
from tests.campaign.victims import target_of

ROOT = Path(__file__).parents[2]
KAFKA = next(subject for subject in SUBJECTS if subject.name == "kafka")
SITE = "name: lab\nshared_machine: true\nkafka: {bootstrap: 'broker.invalid:9092'}\n"


def test_a_host_without_an_address_is_named(tmp_path):
    """The cell that needs it fails with its name; nothing is printed that only a developer reads."""
    (tmp_path / "scenario.yaml").write_text(KAFKA.scenario)
    (tmp_path / "site.yaml").write_text(SITE)
    words = ["--site", str(tmp_path / "site.yaml"), "--out", str(tmp_path / "results"), "--set", "systems=python/kafka"]
    code, output = Harness(tmp_path, ROOT).done("run", str(tmp_path / "scenario.yaml"), *words)
    assert code == 4
    assert invariants.TRACEBACK not in output
    assert "an error ended some cells; go on with --resume " in output
    results = read_results(next((tmp_path / "results").iterdir()))
    failed = next(result for result in results if result.cell.system == "python/kafka")
    assert (failed.status, "broker.invalid" in (failed.reason or "")) == ("failed", True), failed.reason


@pytest.mark.campaign
@pytest.mark.skipif(not disks.can_mount(), reason="only root may mount a small disk")
def test_a_full_disk_below_a_broker_is_named(tmp_path, monkeypatch):
    """The first line, which becomes the reason of its cells, says so; the broker itself only stops to answer."""
    data = tmp_path / "data"
    monkeypatch.setattr(kafka_server, "WARM_UP_S", 3.0)  # as for users: its messages fill the disk
    with (
        Supervisor(tmp_path / "registry", tmp_path / "logs") as supervisor,
        disks.mounted(data, 600_000),
        pytest.raises(ServiceError, match=r"^Kafka at .* serves nobody: .*: No space left on device \("),
    ):
        start_kafka(supervisor, cache=ROOT / ".cache", data=data, note=lambda _: None)


@pytest.mark.parametrize("role", ["master", "worker"])
def test_a_taken_port_is_named(role, tmp_path):
    """A role of HarmonicIO ends with a line about it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        more = ["--state", str(tmp_path)] if role == "master" else ["--master", "127.0.0.1:1"]
        command = [sys.executable, "-m", "frameworks.harmonicio.engine.cli", role, "--port", port, *more]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode not in (0, 1)
    assert invariants.TRACEBACK not in done.stderr
    assert port in done.stderr


CHILD = """
import sys, time
from pathlib import Path
for _ in sys.stdin:
    try:
        Path("/dev/null").open().close()
        opened = "opened"
    except OSError:
        opened = "refused"
    print(opened, time.time(), time.monotonic(), flush=True)
"""


class AskedProcess:
    """A process that opens a file and tells the time whenever it is asked."""

    def __init__(self, **variables):
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **variables},
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate(timeout=60)

    def ask(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        opened, *times = self.process.stdout.readline().split()
        return opened, *map(float, times)


def test_a_limit_holds_while_its_block_lasts():
    """The process can open files before and afterwards."""
    with AskedProcess() as child:
        before = child.ask()[0]
        target = target_of("child", child.process.pid)
        with limits.limited(target, "few descriptors", 0.0):
            within = child.ask()[0]
        assert (before, within, child.ask()[0]) == ("opened", "refused", "opened")


def test_memory_is_limited_to_what_a_process_has():
    """Its former limit is back afterwards."""
    with AskedProcess() as child:
        child.ask()
        pid = child.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_AS)
        with limits.limited(target_of("child", pid), "little memory", 0.5):
            assert 0 < resource.prlimit(pid, resource.RLIMIT_AS)[0] < 2**40
        assert resource.prlimit(pid, resource.RLIMIT_AS) == before


def test_the_clock_steps_for_a_child_alone(tmp_path):
    """Its monotonic time is that of everybody."""
    if not clocks.can_step():
        pytest.skip("no C compiler (cc)")
    with AskedProcess(**clocks.environment(tmp_path / "clock")) as child:
        child.ask()
        clocks.step(tmp_path / "clock", 86400)
        wait_until(lambda: child.ask()[1] - time.time() > 80000, 60, "the step")
        begin = time.monotonic()
        _, _, monotonic = child.ask()
        assert begin <= monotonic <= time.monotonic()
