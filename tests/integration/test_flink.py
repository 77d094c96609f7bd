"""Flink reads Kafka, files and sockets exactly, in a cluster that outlives its cells; whatever of it dies is told."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import ExitStack, closing, contextmanager

import psutil
import pytest
from msgspec.structs import replace

from bench.config.site import Site
from bench.errors import HarnessError, PluginError, ProcessDiedError
from bench.model.cell import Cell
from bench.model.trace import TraceEvents
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint
from bench.services.python_environments import interpreter, missing_reason
from bench.workload.delivery_counts import DeliveryCounts
from bench.workload.load_spec import LoadSpec
from bench.workload.processing import MessageProcessor
from bench.workload.span_recorder import join_events
from frameworks.flink.adapter import _submit
from frameworks.flink.cluster import cluster_of
from frameworks.flink.commands import SubmitJob, Work
from frameworks.flink.conf import FlinkSettings, source_options
from frameworks.flink.installation import ENVIRONMENT, job_jars
from frameworks.flink.site import FlinkSite
from frameworks.report_connection import ReportAddress
from tests.cpu_cost import MIN_SHARE, assert_spent

DEADLINE = 120.0
ENTROPY = 0.75
RATE_S = 2.0

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def installed(env):
    """Skip, with the reason, where Flink is not installed."""
    reason = missing_reason(ENVIRONMENT, env.cache)
    if reason is not None:
        pytest.skip(reason)


def is_beams_fault(log):
    """Whether a TaskManager died at the end of a job of a fault of Beam, see frameworks/flink/README.md."""
    return "Reference count must not be negative" in log.read_text(errors="replace")


@contextmanager
def reading(env, size=100, settings=None, cost=0.0, *, source_name="kafka", traced=False):
    """A source, a load that writes to it, and a job of Flink that reads it: (endpoint, load, job)."""
    cell = Cell("flink", source_name, size, cost)
    source = registry.make_source(source_name, {})
    with ExitStack() as opened:
        opened.callback(source.close)
        endpoint = source.open(cell, env)
        load = opened.enter_context(closing(registry.load_generator_plugin("inline").open(endpoint, env, 1)))
        framework = registry.make_framework("flink", {"flink": settings or {}})
        work = MessageProcessor(size, ENTROPY, traced=traced)
        try:
            job = framework.open(cell, endpoint, work, env)
        except ProcessDiedError as problem:
            if not is_beams_fault(problem.log):
                raise
            job = framework.open(cell, endpoint, work, env)  # as a run does
        yield endpoint, load, opened.enter_context(closing(job))


def send(load, run, size, count, cost=0.0):
    """Have so many messages sent within RATE_S."""
    begin = time.monotonic() + 0.05
    load.start(LoadSpec(run, count / RATE_S, begin, RATE_S, message_bytes=size, cpu_seconds=cost, entropy=ENTROPY))


def count_messages(job, count):
    """Return the delivery counts once the job has processed so many messages."""
    counts, deadline = DeliveryCounts(), time.monotonic() + DEADLINE
    while counts.count + counts.corrupted < count:
        assert time.monotonic() < deadline, f"{counts.count} of {count} messages were processed"
        for report in job.poll():
            counts.add(report)
        time.sleep(0.02)
    return counts


def processes(env):
    """Every process of the cluster: (JobManager, TaskManager, Python workers)."""
    of_name = {child.name: child for child in env.supervisor.children if child.name.startswith("flink-")}
    taskmanager = of_name["flink-taskmanager"]
    members = [psutil.Process(pid) for pid in taskmanager.members()]
    workers = [one for one in members if any("beam_boot" in word for word in one.cmdline()) and "python" in one.name()]
    return of_name["flink-jobmanager"], taskmanager, workers


@pytest.mark.parametrize("mode", ["table", "datastream"])
@pytest.mark.parametrize(
    ("source_name", "size", "count"),
    [
        pytest.param("kafka", 100, 5000, id="kafka 100 B"),
        pytest.param("kafka", 10_000_000, 10, id="kafka 10 MB"),
        pytest.param("files", 100, 3000, id="files 100 B"),
        pytest.param("files", 10_000_000, 10, id="files 10 MB"),
        pytest.param("tcp", 100, 5000, id="tcp 100 B"),
        pytest.param("tcp", 1_000_000, 10, id="tcp 1 MB"),
    ],
)
def test_every_message_is_worked_on_once(env, source_name, mode, size, count):
    """What was sent is what was processed, whatever its size."""
    with reading(env, size, {"mode": mode}, source_name=source_name) as (_, load, job):
        send(load, 1, size, count)
        counts = count_messages(job, count)
    assert counts.reconcile({0: count}) == (0, 0)
    assert (counts.corrupted, counts.negative) == (0, 0)


def test_the_cost_is_burnt(env):
    """At least what was asked for, and hardly more."""
    runs = itertools.count(1)

    def spend():
        send(load, next(runs), 100, 100, cost=0.01)
        counts = count_messages(job, 100)
        assert counts.cpu_requested_s == pytest.approx(1.0)
        return counts.cpu_used_s, counts.cpu_requested_s

    with reading(env, cost=0.01) as (_, load, job):
        assert_spent(spend, least=MIN_SHARE)


def test_a_traced_job_says_what_its_subtasks_do(env):
    """Shares of the time since the last look, as samples of the trace; the Python workers record their own spans."""
    trace = TraceEvents()
    with reading(env, 1000, traced=True) as (_, load, job):
        begin, deadline = time.monotonic() + 0.05, time.monotonic() + DEADLINE
        load.start(LoadSpec(1, 200, begin, 4.0, message_bytes=1000, cpu_seconds=0.0, entropy=ENTROPY))
        while not (trace.samples and trace.spans):
            assert time.monotonic() < deadline, f"{len(trace.samples)} samples, {len(trace.spans)} spans"
            trace = join_events((trace, *(report.trace for report in job.poll()))) or trace
            time.sleep(0.02)
    of_entity = {(one.at, one.entity): {} for one in trace.samples}
    for one in trace.samples:
        of_entity[one.at, one.entity][one.metric] = one.value
    for shares in of_entity.values():
        assert shares.keys() == {"busy", "idle", "back-pressured"}
        assert sum(shares.values()) == pytest.approx(1)


def test_a_cluster_serves_many_cells(env):
    """The next cell finds the processes of the one before, and only its own messages."""
    seen = []
    for run in (1, 2):
        with reading(env) as (_, load, job):
            send(load, run, 100, 50)
            assert count_messages(job, 50).reconcile({0: 50}) == (0, 0)
            seen.append(processes(env)[:2])
    same = [child.pid for child in seen[0]] == [child.pid for child in seen[1]]
    assert same or is_beams_fault(seen[0][1].log)


def test_a_cluster_listens_on_loopback_only(env):
    """Before a job: then Beam, which knows no other way, opens ports for Python workers on every interface."""
    cluster_of(FlinkSettings(), env)
    pids = {pid for child in processes(env)[:2] for pid in child.members()}
    listening = [one for one in psutil.net_connections("tcp") if one.pid in pids and one.status == "LISTEN"]
    assert listening
    assert {one.laddr.ip.removeprefix("::ffff:") for one in listening} <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize(
    ("source_name", "victim"),
    [
        ("kafka", "JobManager"),
        ("kafka", "TaskManager"),
        ("kafka", "Python worker"),
        ("files", "TaskManager"),
        ("tcp", "TaskManager"),
    ],
)
def test_whatever_is_killed_is_told_and_replaced(env, source_name, victim):
    """Polling raises ProcessDiedError, closing works, and the next cell gets each of its own messages once."""
    with reading(env, source_name=source_name) as (_, load, job):
        send(load, 1, 100, 50)
        count_messages(job, 50)
        jobmanager, taskmanager, workers = processes(env)
        pid = {"JobManager": jobmanager.pid, "TaskManager": taskmanager.pid, "Python worker": workers[0].pid}[victim]
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ProcessDiedError, match=r"flink|Flink"):
            count_messages(job, 1)
    with reading(env, source_name=source_name) as (_, load, job):
        send(load, 2, 100, 50)
        assert count_messages(job, 50).reconcile({0: 50}) == (0, 0)


@pytest.mark.parametrize(
    ("source_name", "address", "said"),
    [
        ("kafka", "/nowhere", r"bootstrap|Kafka|kafka"),
        ("files", "/nowhere", r"FileNotFoundException.*/nowhere"),
        ("tcp", "127.0.0.1:1", r"ConnectException"),
    ],
    ids=["kafka", "files", "tcp"],
)
def test_a_job_that_cannot_read_is_told(env, source_name, address, said):
    """The error names what Flink says, whether the job fails before it runs or soon after."""
    with reading(env, source_name=source_name) as (endpoint, _, job):
        job.close()
        framework = registry.make_framework("flink", {})
        lost = replace(endpoint, address=address)
        with pytest.raises(HarnessError, match=said), ExitStack() as opened:  # noqa: PT012
            failing = framework.open(Cell("flink", source_name, 100, 0.0), lost, MessageProcessor(100, ENTROPY), env)
            opened.callback(failing.close)
            count_messages(failing, 1)


@pytest.mark.parametrize("mode", ["table", "datastream"])
def test_a_job_that_no_cluster_accepts_is_told(env, mode, unused_address, tmp_path):
    """The error names the deepest cause, also where PyFlink has an exception of its own for that of Java."""
    job = SubmitJob(
        rest=unused_address,
        mode=mode,
        jars=tuple(map(str, job_jars("files", env.cache, env.note))),
        modules="",
        conf={"rest.retry.max-attempts": "1"},
        source=source_options(FlinkSettings(), Endpoint("files", str(tmp_path)), 1),
        work=Work(MessageProcessor(100, ENTROPY), ReportAddress("127.0.0.1", 1, "")),
    )
    with pytest.raises(ProcessDiedError, match=r"failed to open: .*Connection refused"):
        _submit(job, cluster_of(FlinkSettings(), env), env)


def test_the_benchmark_reads_every_message(request, tmp_path):
    """Flink and a plain loop read a full topic exactly, and their ratio is printed."""
    options = ["--size", "10kB", "--bytes", "5MB", "--turns", "1", "--json", "--data", str(tmp_path)]
    command = [sys.executable, "-m", "frameworks.flink.benchmark", *options]
    done = subprocess.run(command, cwd=request.config.rootpath, stdout=subprocess.PIPE, check=True, timeout=400)
    found = json.loads(done.stdout)
    assert {one["reader"] for one in found} == {"flink table", "flink datastream", "plain loop"}
    assert all(one["exact"] for one in found)


def test_a_source_that_closes_a_connection_ends_the_job(env):
    """What was sent before is processed once; then polling raises ProcessDiedError."""
    with reading(env, source_name="tcp") as (_, load, job):
        send(load, 1, 100, 50)
        assert count_messages(job, 50).reconcile({0: 50}) == (0, 0)
        load.close()
        with pytest.raises(ProcessDiedError, match="Flink ended"):
            count_messages(job, 1)


def test_a_cluster_of_a_site_runs_the_same_job(env, unused_address):
    """The job brings our modules; what it has processed is told to the address that the site file gives."""
    with reading(env) as (_, _, own):
        rest = own.cluster.rest.address
    python = str(interpreter(ENVIRONMENT, env.cache))
    site = Site(sections={"flink": FlinkSite(rest, unused_address, python=python, cores=2)})
    there = RunEnvironment(site, env.supervisor, env.data / "there", env.cache, cores=2)
    before = {child.name for child in env.supervisor.children}
    source = registry.make_source("kafka", {})
    with ExitStack() as opened:
        opened.callback(source.close)
        endpoint = source.open(Cell("flink", "kafka", 100, 0.0), env)
        load = opened.enter_context(closing(registry.load_generator_plugin("inline").open(endpoint, env, 1)))
        framework = registry.make_framework("flink", {})
        job = framework.open(Cell("flink", "kafka", 100, 0.0), endpoint, MessageProcessor(100, ENTROPY), there)
        opened.enter_context(closing(job))
        send(load, 1, 100, 50)
        assert count_messages(job, 50).reconcile({0: 50}) == (0, 0)
        with zipfile.ZipFile(job.cluster.modules) as brought:
            assert {"bench/workload/processing.py", "frameworks/flink/work.py"} <= set(brought.namelist())
    assert {child.name for child in env.supervisor.children} <= before


def test_a_site_without_free_slots_is_told(env, unused_address):
    """The error says how many are free: the run's own job has them all."""
    with reading(env) as (endpoint, _, own):
        site = Site(sections={"flink": FlinkSite(own.cluster.rest.address, unused_address, cores=2)})
        there = RunEnvironment(site, env.supervisor, env.data / "full", env.cache, cores=2)
        framework = registry.make_framework("flink", {})
        with pytest.raises(PluginError, match="0 task slots free, and 2 are needed"):
            framework.open(Cell("flink", "kafka", 100, 0.0), endpoint, MessageProcessor(100, ENTROPY), there)
