"""Scaling policies on a running HarmonicIO: nothing is lost while PEs come and go, and DS2 finds its answer soon."""

from pathlib import Path

import pytest

from bench.config.site import Site
from bench.config.validation import parse_scenario
from bench.config.yaml_document import read_document
from bench.elasticity.live_run import score_live
from bench.elasticity.live_samples import OPERATOR, SOURCE
from bench.runner.elasticity import read_policy_runs
from bench.runner.run import RunOptions, run
from bench.storage.run_folder import RunFolder, read_trials
from reports.formats import policy_page

SCENARIO = """\
name: tiny
kind: elasticity
systems: [harmonicio/stream, python/tcp]
grid: {message_size: [1 kB], cpu_cost: [50 ms]}
elasticity:
  load: [{time: 4 s, rate: 10 /s}, {time: 14 s, rate: 42 /s}, {time: 10 s, rate: 10 /s}]
  policies: [ds2, fixed]
  interval: 2 s
  most: 6
  duty: 0 %
load: {by: inline}
timing: {drain: 60 s}
settings:
  fixed: {parallelism: {system: 2}}
  ds2: {warm_up_time: 2 s, target_rate_ratio: 100}
"""
SENT = 40 + 588 + 100
pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder of a finished run."""
    where = tmp_path_factory.mktemp("elasticity")
    file = where / "tiny.yaml"
    file.write_text(SCENARIO)
    folder = RunFolder.create(where, "tiny")
    options = RunOptions("bench run tiny.yaml", Path.home() / ".cache" / "stream-bench", where / "children")
    assert run(parse_scenario(read_document(file)), Site(), folder, lambda _: None, options) == []
    return folder.folder


def run_of(folder, policy):
    return next(one for one in read_policy_runs(folder) if (one.system, one.policy) == ("harmonicio/stream", policy))


def test_every_message_is_processed_once_while_workers_come_and_go(folder):
    """Each policy gets the same messages, and none of them is lost or repeated."""
    seen = [entry.measurement for entry in read_trials(folder)]
    assert [(one.sent, one.processed, one.lost, one.duplicated, one.ended) for one in seen] == [
        (SENT, SENT, 0, 0, "complete")
    ] * 2
    assert all(one.drained for one in seen)


def test_ds2_reaches_the_right_workers_in_at_most_three_steps(folder):
    """42 messages/s of 50 ms each need three workers, also of 70 ms; 10 messages/s need one. Up and down."""
    decisions = run_of(folder, "ds2").decisions
    last = {one.sample.offered[SOURCE]: one.plan.parallelism[OPERATOR] for one in decisions}
    before = [one.plan.parallelism[OPERATOR] for one in decisions if one.sample.at <= 4]
    assert (before[-1], last) == (1, {10.0: 1, 42.0: 3})
    assert score_live(decisions).steps <= 3


def test_each_interval_has_a_decision_with_its_sentence(folder):
    """An interval is stored while the run goes on, and the end names the trial."""
    fixed = run_of(folder, "fixed")
    assert [one.sample.at for one in fixed.decisions] == [2.0 * number for number in range(1, 15)]
    assert {one.plan.reason for one in fixed.decisions[3:]} == {"the number of instances is fixed"}
    assert fixed.is_complete
    assert fixed.end.trial == 1


def test_a_system_whose_workers_are_fixed_is_refused_with_its_reason(folder):
    """Nothing of it is started."""
    refused = [one for one in read_policy_runs(folder) if one.system == "python/tcp"]
    assert [one.is_unsupported for one in refused] == [True, True]
    assert "advice and restart only" in refused[0].end.reason


def test_the_report_shows_every_policy_and_why_a_system_is_not_elastic(folder):
    """It is the default report of a run of this kind."""
    (page,) = policy_page.write(folder)
    text = page.read_text(encoding="utf-8")
    assert "harmonicio/stream: " in text
    assert "python/tcp: the number of its workers is fixed while it runs" in text
    assert "Changes by ds2" in text
