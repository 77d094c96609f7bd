"""Any program is counted by what it reports: exactly, over TCP and over a topic, however it is started."""

import itertools
import shutil
import subprocess
import sys
import time
from functools import partial

import pytest

from bench.config.scenario import Grid, LoadSettings, Scenario, Search, Timing
from bench.config.site import Site
from bench.errors import NotReadyError, ProcessDiedError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.runner.run import RunOptions, run
from bench.runner.verification import verify_run
from bench.storage.run_folder import RunFolder, read_results, read_trials
from bench.units import Rate, Seconds, Share, Size
from bench.workload.delivery_counts import DeliveryCounts
from bench.workload.load_spec import LoadSpec
from bench.workload.processing import MessageProcessor
from tests.cpu_cost import assert_spent

SIZE, ENTROPY, COUNT, RATE = 1000, 0.5, 400, 800.0
DEADLINE_S = 100.0
QUIET_S = 1.0
"""For which nothing more is reported after the last message."""

OVER_TCP = """
import json, os, socket, sys, time
fault, path = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.environ["STREAM_BENCH_ENDPOINT"]
while not os.path.exists(path):
    time.sleep(0.01)
told = json.load(open(path))
address = lambda text: (text.rpartition(":")[0], int(text.rpartition(":")[2]))
source = socket.create_connection(address(told["address"]))
reports = socket.create_connection(address(told["report_address"]))
reports.sendall(told["report_token"].encode() + b"\\n")
for number, message in enumerate(source.makefile("rb")):
    head = message[:64]
    if fault == "flip" and number % 50 == 20:
        head = head[:10] + b"x" + head[11:]
    if fault != "lose" or number % 50 != 20:
        reports.sendall(head)
    if fault == "duplicate" and number % 50 == 20:
        reports.sendall(head)
"""
OVER_A_TOPIC = """
import os, sys
from confluent_kafka import Consumer, Producer
fault, broker = sys.argv[1], {"bootstrap.servers": os.environ["STREAM_BENCH_ADDRESS"]}
topic = os.environ["STREAM_BENCH_TOPIC"]
reader = Consumer({**broker, "group.id": topic, "auto.offset.reset": "earliest"})
writer = Producer({**broker, "linger.ms": 5})
reader.subscribe([topic])
number = 0
while True:
    for message in reader.consume(100, timeout=0.05):
        if message.error() is None:
            number += 1
            for _ in range({"lose": 0, "duplicate": 2}.get(fault, 1) if number % 50 == 20 else 1):
                writer.produce(os.environ["STREAM_BENCH_REPORT_TOPIC"], message.value()[:64])
    writer.poll(0)
"""


class Measured:
    """A program that reads a source, and a load generator that writes to it."""

    def __init__(self, env, source, cost, settings):
        self.cell = Cell("command", source, SIZE, cost)
        self.source = registry.make_source(source, {})
        self.endpoint = self.source.open(self.cell, env)
        self.load = registry.load_generator_plugin("inline").open(self.endpoint, env, 1)
        self.framework, self._env, self._settings = None, env, settings

    def open(self):
        framework = registry.make_framework("command", {"command": self._settings})
        assert framework.unsupported_reason(self.cell, self.cell.source) is None
        self.framework = framework.open(self.cell, self.endpoint, MessageProcessor(SIZE, ENTROPY), self._env)

    def counts(self, run=1):
        """Send a run's messages; return what is reported of it until it was quiet for a while."""
        cost = self.cell.cpu_seconds
        begin = time.monotonic() + 0.05
        self.load.start(LoadSpec(run, RATE, begin, COUNT / RATE, SIZE, cpu_seconds=cost, entropy=ENTROPY))
        counts, deadline, last = DeliveryCounts(), time.monotonic() + DEADLINE_S, None
        while last is None or time.monotonic() < last + QUIET_S:
            assert time.monotonic() < deadline, f"{counts.count} of {COUNT} messages were reported"
            for report in self.framework.poll():
                counts.add(report)
            if counts.count + counts.corrupted >= 0.95 * COUNT:
                last = last or time.monotonic()
            self.load.poll()
            time.sleep(0.01)
        return counts

    def close(self):
        for plugin in (self.framework, self.load, self.source):
            if plugin is not None:
                plugin.close()


@pytest.fixture
def measure(env, tmp_path):
    """Return a function that prepares a program; a text is the program itself, in Python."""
    opened = []

    def prepare(source, program, *words, cost=0.0, **settings):
        command = program
        if "\n" in program:
            (tmp_path / "program.py").write_text(program)
            command = " ".join(["{python}", "-u", str(tmp_path / "program.py"), *words])
        opened.append(Measured(env, source, cost, {"run": command, **settings}))
        return opened[-1]

    yield prepare
    for one in opened:
        one.close()


def spend_verified(program, runs):
    """Send the next run's messages; return the CPU seconds that were used and requested; each body was verified."""
    counts = program.counts(next(runs))
    assert counts.reconcile({0: COUNT}) == (0, 0)
    assert (counts.corrupted, counts.unverified) == (0, 0)
    return counts.cpu_used_s, counts.cpu_requested_s


FAULTS = pytest.mark.parametrize(
    ("fault", "lost", "duplicated"),
    [("none", 0, 0), ("lose", 8, 0), ("duplicate", 0, 8)],
    ids=["exact", "lost", "twice"],
)


@FAULTS
def test_headers_over_tcp_are_counted_exactly(measure, fault, lost, duplicated):
    """What a program leaves out is lost, and what it sends twice was processed twice."""
    program = measure("tcp", OVER_TCP, fault)
    program.open()
    counts = program.counts()
    assert counts.reconcile({0: COUNT}) == (lost, duplicated)
    assert (counts.corrupted, counts.negative, counts.unverified) == (0, 0, counts.count)
    assert counts.from_due.quantile(0.5) > 0


@pytest.mark.real
@FAULTS
@pytest.mark.usefixtures("kafka")
def test_headers_over_a_topic_are_counted_exactly(measure, fault, lost, duplicated):
    """As over TCP; the topic is made beside that of the source, and is gone afterwards."""
    program = measure("kafka", OVER_A_TOPIC, fault, reports="topic")
    program.open()
    assert program.counts().reconcile({0: COUNT}) == (lost, duplicated)


def test_damaged_headers_are_corrupted_messages(measure):
    """They are lost, and each one is counted."""
    program = measure("tcp", OVER_TCP, "flip")
    program.open()
    counts = program.counts()
    assert (counts.corrupted, counts.reconcile({0: COUNT})) == (8, (8, 0))


def test_a_program_that_reports_its_work_is_held_to_it(measure):
    """The example spends the CPU cost and verifies bodies: both are in its records."""
    program = measure("tcp", "{python} -m frameworks.command.example", cost=0.001)
    program.open()
    assert_spent(partial(spend_verified, program, itertools.count(1)))


def test_a_program_that_runs_already_is_told_by_a_file(measure, tmp_path):
    """It waits for the file, which has the address of the source and of the reports."""
    (tmp_path / "mine.py").write_text(OVER_TCP)
    path = tmp_path / "endpoint.json"
    program = measure("tcp", "none", file=str(path))
    with subprocess.Popen([sys.executable, str(tmp_path / "mine.py"), "none", str(path)]) as mine:
        try:
            program.open()
            assert program.counts().reconcile({0: COUNT}) == (0, 0)
        finally:
            mine.kill()


def test_a_program_may_say_when_it_is_ready(measure):
    """By a text in its output, before it has reported anything."""
    ready = 'print("I read", flush=True)\nimport time\ntime.sleep(100)\n'
    program = measure("tcp", ready, ready="I read")
    program.open()
    assert program.framework.poll() == []


def test_a_program_that_is_never_ready_is_given_up(measure):
    """The line says what was waited for, and for how long."""
    program = measure("tcp", "import time\ntime.sleep(100)\n", ready_timeout="300 ms")
    with pytest.raises(NotReadyError, match=r"has not connected to the port for its reports within 0\.3 s"):
        program.open()


def test_a_program_that_ends_says_why(measure):
    """The last line of its output is in the error."""
    program = measure("tcp", "raise SystemExit(\n'no such pipeline')\n")
    with pytest.raises(ProcessDiedError, match=r"command ended with exit code 1 (.|\n)*no such pipeline"):
        program.open()


@pytest.mark.real
@pytest.mark.usefixtures("kafka")
def test_the_example_in_python_is_counted(measure):
    """docs/programs/reader.py, which has nothing of the harness."""
    program = measure("kafka", "{python} docs/programs/reader.py")
    program.open()
    assert program.counts().reconcile({0: COUNT}) == (0, 0)


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_the_example_in_go_is_counted(measure):
    """docs/programs/reader.go, which needs only Go's standard library."""
    program = measure("tcp", "go run docs/programs/reader.go")
    program.open()
    assert program.counts().reconcile({0: COUNT}) == (0, 0)


@pytest.mark.real
@pytest.mark.skipif(shutil.which("javac") is None, reason="a JDK is not installed, only a Java runtime")
@pytest.mark.usefixtures("kafka")
def test_the_topology_of_kafka_streams_is_counted(measure):
    """docs/programs/Topology.java verifies every body and spends the CPU cost of every message."""
    settings = {"jars": "docs/programs/kafka-streams.lock", "reports": "topic", "ready": "ready"}
    program = measure("kafka", "java -cp {jars} docs/programs/Topology.java", cost=0.001, **settings)
    program.open()
    runs = itertools.count(1)
    for _ in range(2):
        assert_spent(partial(spend_verified, program, runs))


def own_scenario(**settings):
    """Return a scenario of one cell with a search of a few trials, none of which is too fast."""
    return Scenario(
        "own",
        ("command/tcp",),
        Grid((Size(SIZE),), (Seconds(0.0001),)),
        load=LoadSettings(by="inline"),
        search=Search("bisection", Share(0.5), Seconds(30), start=Rate(50), highest=Rate(100)),
        timing=Timing(Seconds(0.2), Seconds(1), Seconds(10)),
        settings={"command": settings},
    )


def measure_own(scenario, env, tmp_path, site):
    """Run a scenario of one cell; return the folder and the result."""
    store, options = RunFolder.create(tmp_path, "own"), RunOptions("bench run", env.cache, tmp_path / "children")
    (result,) = run(scenario, site, store, lambda _event: None, options)
    return store.folder, result


def test_a_result_says_what_the_program_did_not_report(tmp_path, env):
    """A program that sends headers alone has a rate, and a remark that it did not report its work."""
    (tmp_path / "program.py").write_text(OVER_TCP)
    scenario = own_scenario(run=f"{{python}} {tmp_path / 'program.py'} none")
    folder, result = measure_own(scenario, env, tmp_path, Site(shared_machine=True))
    assert result.low_hz is not None
    assert "did not report what it did with the bodies and CPU cost of messages" in (result.remark or "")
    assert read_results(folder) == [result]
    assert verify_run(folder).differences == ()


def test_a_program_that_runs_already_is_no_other_work(tmp_path, env):
    """Its CPU time, which looks like other work, makes no trial invalid; a remark says that it is not known."""
    (tmp_path / "mine.py").write_text(OVER_TCP)
    path = tmp_path / "endpoint.json"
    with subprocess.Popen([sys.executable, str(tmp_path / "mine.py"), "none", str(path)]) as mine:
        try:
            folder, result = measure_own(own_scenario(run="none", file=str(path)), env, tmp_path, Site())
        finally:
            mine.kill()
    assert result.low_hz is not None
    assert result.cpu_share.get("framework") is None
    assert "The harness did not start the processes that do its work" in (result.remark or "")
    assert all("available" not in trial.measurement.cpu for trial in read_trials(folder))
