"""Scaling policies on a running Flink: DS2 finds its answer soon, and what a restart processes again is no fault."""

import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psutil
import pytest

from bench.config.site import Site
from bench.config.validation import parse_scenario
from bench.config.yaml_document import read_document
from bench.elasticity.live_run import score_live
from bench.elasticity.live_samples import OPERATOR, SOURCE
from bench.errors import PluginError, ProcessDiedError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.runner.elasticity import read_policy_runs
from bench.runner.run import RunOptions, run
from bench.services.python_environments import missing_reason
from bench.storage.run_folder import RunFolder, read_trials
from bench.workload.delivery_counts import DeliveryCounts
from bench.workload.load_spec import LoadSpec
from bench.workload.processing import MessageProcessor
from frameworks.flink.installation import ENVIRONMENT
from reports.formats import policy_page

SCENARIO = """\
name: tiny
kind: elasticity
systems: [flink/kafka]
grid: {message_size: [1 kB], cpu_cost: [400 ms]}
elasticity:
  load: [{time: 12 s, rate: 1.5 /s}, {time: 44 s, rate: 5.5 /s}, {time: 28 s, rate: 1.5 /s}]
  policies: [ds2]
  interval: 4 s
  most: 4
  duty: 0 %
load: {by: inline}
timing: {drain: 120 s}
settings:
  ds2: {warm_up_time: 4 s, target_rate_ratio: 100, ignored_scale_up: 1}
  flink: {checkpoint_interval: 1 s}
"""
SENT = 18 + 242 + 42
ENTROPY = 0.5
DEADLINE_S = 120.0
ATTEMPTS = 3
CACHE = Path.home() / ".cache" / "stream-bench"
REASON = missing_reason(ENVIRONMENT, CACHE)
pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(900),
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder of a finished run; it is resumed where Flink died of its own defect (frameworks/flink/README.md)."""
    where = tmp_path_factory.mktemp("elasticity")
    file = where / "tiny.yaml"
    file.write_text(SCENARIO)
    folder = RunFolder.create(where, "tiny")
    options = RunOptions("bench run tiny.yaml", CACHE, where / "children")
    for _ in range(ATTEMPTS):
        assert run(parse_scenario(read_document(file)), Site(), folder, lambda _: None, options) == []
        if all(one.is_complete for one in read_policy_runs(folder.folder)):
            break
    return folder.folder


def test_no_message_is_lost_and_restarts_are_counted_apart(folder):
    """Messages that were processed again after a checkpoint are not duplicates, and all are in the counts."""
    seen = [entry.measurement for entry in read_trials(folder)][-1]
    assert (seen.sent, seen.lost, seen.duplicated, seen.ended) == (SENT, 0, 0, "complete")
    assert seen.processed - seen.processed_again == SENT
    assert seen.drained


def test_ds2_reaches_the_right_parallelism_in_at_most_three_steps(folder):
    """5.5 messages/s of 400 ms each need three workers, 1.5 messages/s need one; up and down."""
    (ds2,) = read_policy_runs(folder)
    assert ds2.is_complete
    last = {one.sample.offered[SOURCE]: one.plan.parallelism[OPERATOR] for one in ds2.decisions}
    before = [one.plan.parallelism[OPERATOR] for one in ds2.decisions if one.sample.at <= 12]
    assert (before[-1], last) == (1, {1.5: 1, 5.5: 3})
    assert score_live(ds2.decisions).steps <= 3


def test_the_report_shows_what_was_processed_again(folder):
    """It stands beside the lost and repeated messages."""
    (page,) = policy_page.write(folder)
    text = page.read_text(encoding="utf-8")
    assert "flink/kafka: ds2 was under target" in text
    assert "Processed again" in text


@contextmanager
def running(env, **settings):
    """A load, and a job of Flink that reads what it sends: (load, job)."""
    cell, source = Cell("flink", "kafka", 100, 0.0), registry.make_source("kafka", {})
    with ExitStack() as opened:
        opened.callback(source.close)
        endpoint = source.open(cell, env)
        load = opened.enter_context(closing(registry.load_generator_plugin("inline").open(endpoint, env, 1)))
        framework = registry.make_framework("flink", {"flink": settings})
        job = framework.open(cell, endpoint, MessageProcessor(100, ENTROPY), env)
        yield load, opened.enter_context(closing(job))


def send(load):
    """Have 50 messages sent within a second."""
    begin = time.monotonic() + 0.05
    load.start(LoadSpec(1, 50.0, begin, 1.0, message_bytes=100, cpu_seconds=0.0, entropy=ENTROPY))


def count_until(job, counts, condition):
    """Add what the job processes to the counts until a condition holds."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"{counts.count} messages, {counts.processed_again} of them again"
        for report in job.poll():
            counts.add(report)
        time.sleep(0.02)


@pytest.mark.parametrize("mode", ["table", "datastream"])
def test_what_no_checkpoint_has_is_processed_again(env, kafka, monkeypatch, mode):
    """Without a checkpoint that is every message; none is lost, and none counts as repeated."""
    monkeypatch.setattr(env, "max_workers", 2)
    conf = {"jobmanager.adaptive-scheduler.rescale-trigger.max-delay": "0 ms"}  # no checkpoint is waited for
    with running(env, mode=mode, checkpoint_interval="1 h", conf=conf) as (load, job):
        send(load)
        counts = DeliveryCounts()
        count_until(job, counts, lambda: counts.count == 50)
        job.rescale(2)
        count_until(job, counts, lambda: counts.processed_again == 50 and len(job.workers()) == 2)
    assert (counts.reconcile({0: 50}), counts.count) == ((0, 0), 100)


def test_a_killed_worker_of_an_elastic_job_is_told(env, kafka, monkeypatch):
    """Workers of such a job may end, but only where Flink ends them: with the next message it says what failed."""
    monkeypatch.setattr(env, "max_workers", 2)
    with running(env) as (load, job):
        job.rescale(1)
        clusters = [child for child in env.supervisor.children if child.name == "flink-taskmanager"]
        members = [psutil.Process(pid) for child in clusters for pid in child.members()]
        workers = [one for one in members if any("beam_boot" in word for word in one.cmdline())]
        next(one for one in workers if "python" in one.name()).kill()
        send(load)
        with pytest.raises(ProcessDiedError, match="the job of Flink ended"):
            count_until(job, DeliveryCounts(), lambda: False)


def test_a_fixed_parallelism_is_refused(env, kafka):
    """The error names the scheduler that the cluster needs, in one line."""
    with running(env) as (_, job), pytest.raises(PluginError, match=r"refuses .*adaptive") as refused:
        job.rescale(1)
    assert "\n" not in str(refused.value)
