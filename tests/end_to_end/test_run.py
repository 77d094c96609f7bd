"""The harness measures itself: known ceilings are found, mistakes are seen, and a run can be interrupted anywhere."""

import shutil
import signal
import subprocess
import sys
import time
from functools import cache, partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from simulated_runs import NoBackend

from bench.analysis import foreign_work, late_generator
from bench.analysis.verdict import Rules, judge
from bench.cli.terminal import ignore
from bench.config.site import Site
from bench.config.validation import apply_changes, parse_scenario
from bench.config.yaml_document import read_document
from bench.runner.progress import TrialFinished
from bench.runner.run import RunOptions, run
from bench.storage.run_folder import RunFolder, read_results, read_run, read_trials

CEILING = 4000.0


@pytest.fixture(autouse=True)
def _shared_machine(monkeypatch):
    """What else this machine does is no reason here to throw a trial away: these ceilings are the plugin's own."""
    monkeypatch.setattr(foreign_work, "LOSS_FACTOR", 0.0)
    monkeypatch.setattr(late_generator, "STALL_FACTOR", 0.0)


ALONE = """
import os
import sys
from contextlib import suppress
from pathlib import Path
from bench.analysis import foreign_work, late_generator
from bench.cli.terminal import ignore
from bench.config.yaml_document import read_document
from bench.runner.run import RunOptions, run
from bench.config.validation import apply_changes, parse_scenario
from bench.config.site import Site
from bench.storage.run_folder import RunFolder

with suppress(PermissionError):
    os.nice(-15)
foreign_work.LOSS_FACTOR = late_generator.STALL_FACTOR = 0.0
folder, file, *changes = sys.argv[1:]
store = RunFolder.create(Path(folder), "smoke")
options = RunOptions("bench run", Path(folder, "cache"), Path(folder, "children"))
run(parse_scenario(apply_changes(read_document(Path(file)), changes)), Site(), store, ignore, options)
print(store.folder)
"""
"""In a process of its own, as for users: threads that earlier tests have left behind would take the interpreter's lock
from it. Where that is allowed it goes before other tests: a pause of 0.3 s in a window of 0.6 s looks like an overload,
and what would tell the difference is switched off here."""
USUAL = (
    "grid.message_size=100 B", "settings.capacity.ceiling=4 k/s", "search.strategy=bisection", "search.precision=10 %",
    "search.start=3 k/s", "search.highest=8 k/s", "search.budget=5 min", "timing.window=600 ms",
)  # fmt: skip
LATENCY = ("latency.at=50 %", "latency.window=1 s")
MISTAKEN = ("settings.capacity.every=500", "search.start=1 k/s", "search.budget=2 s", "timing.window=1 s")


@pytest.fixture
def smoke(request):
    """The smoke scenario with one small cell, changed as asked."""

    def scenario(*changes):
        return parse_scenario(
            apply_changes(read_document(request.config.rootpath / "scenarios" / "smoke.yaml"), [*USUAL, *changes])
        )

    return scenario


@pytest.fixture
def ran(tmp_path, request):
    """Runs the changed scenario; its folder, and the rules of its verdicts."""
    return partial(run_alone, request.config.rootpath, tmp_path)


@pytest.fixture(scope="module")
def ran_once(tmp_path_factory, request):
    """Runs a changed scenario once for all tests, which only read its folder; the folder, and the rules of verdicts."""
    return cache(lambda *changes: run_alone(request.config.rootpath, tmp_path_factory.mktemp("run"), *changes))


def run_alone(root, folder, *changes):
    """Run the changed scenario in a process of its own; return the run's folder, and the rules of its verdicts."""
    command = [sys.executable, "-c", ALONE, str(folder), "scenarios/smoke.yaml", *USUAL, *changes]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    run_folder = Path(done.stdout.splitlines()[-1])
    scenario = read_run(run_folder).scenario
    return run_folder, Rules(scenario.objectives, float(scenario.search.precision))


def test_a_known_ceiling_is_found(ran_once):
    """The estimate is not above the ceiling, and below it only by what a busy machine takes."""
    folder, _ = ran_once(*LATENCY)
    result = read_results(folder)[0]
    assert result.status == "measured"
    assert 0.5 * CEILING <= result.estimate_hz <= 1.1 * CEILING
    assert result.confirmed_hz == result.low_hz


def test_the_interval_of_the_certified_search_holds_a_known_ceiling(ran):
    """A busy machine takes a part of it."""
    folder, _ = ran("search.strategy=two-counter", "search.budget=20 s")
    result = read_results(folder)[0]
    assert result.status == "measured"
    assert result.interval == "95 %"
    assert result.low_hz <= 1.02 * CEILING
    assert result.high_hz >= 0.8 * CEILING


def test_micro_batches_find_the_same_ceiling(ran):
    """What shows only every quarter of a second is judged at those moments."""
    times = ("timing.settle=1 s", "timing.window=4 s")  # what the token bucket has saved is 6 % of what comes in them
    folder, _ = ran("settings.capacity.batch_interval=250 ms", *times)
    assert read_results(folder)[0].estimate_hz == pytest.approx(CEILING, rel=0.15)


def test_in_every_sustained_trial_all_that_was_sent_was_processed(ran_once):
    """Nothing lost, duplicated or corrupted, by the tallies."""
    folder, rules = ran_once(*LATENCY)
    sustained = [
        entry.measurement for entry in read_trials(folder) if judge(entry.measurement, rules).word == "sustained"
    ]
    assert sustained
    for seen in sustained:
        assert seen.processed == seen.sent > 0
        assert seen.lost == seen.duplicated == seen.corrupted == seen.out_of_order == 0


@pytest.mark.parametrize(
    ("mistake", "found"),
    [("lose", "lost"), ("duplicate", "duplicated"), ("swap", "out_of_order"), ("flip", "corrupted")],
)
def test_a_mistake_in_a_thousand_is_found(ran_once, mistake, found):
    """Every trial shows it, under its own name only."""
    folder, _ = ran_once(f"settings.capacity.mistake={mistake}", *MISTAKEN)
    seen = read_trials(folder)[0].measurement
    counts = {what: getattr(seen, what) for what in ("lost", "duplicated", "out_of_order", "corrupted")}
    assert counts[found] > 0
    assert sum(counts.values()) == counts[found]


def test_a_rate_at_which_messages_are_lost_is_not_sustained(ran_once):
    """However little the backlog drifts: its first rate is one that a busy machine keeps up with."""
    folder, rules = ran_once("settings.capacity.mistake=lose", *MISTAKEN)
    judged = judge(read_trials(folder)[0].measurement, rules)
    assert judged.word == "overloaded"
    assert "lost" in judged.why


def test_a_generator_slowed_on_purpose_gives_a_lower_bound(ran):
    """Its trials are invalid, and its limit is never taken for the framework's.

    The framework can do eight times the limit, so that a busy machine does not make it the slower one.
    """
    limit = CEILING / 8
    folder, rules = ran(f"load.limit={limit} /s", f"search.start={limit / 2} /s")
    beyond = [entry.measurement for entry in read_trials(folder) if entry.measurement.planned.rate > 1.15 * limit]
    result = read_results(folder)[0]
    assert {judge(seen, rules).word for seen in beyond} == {"invalid"}
    assert (result.status, result.reason, result.high_hz) == ("lower-bound", "generator", None)
    assert result.generator_hz == pytest.approx(limit, rel=0.15)


def test_lost_results_are_made_again_from_the_journal(ran_once, tmp_path, smoke):
    """Nothing is deployed, and they are the same to the last digit; latency trials are not made twice."""
    whole, _ = ran_once(*LATENCY)
    folder = shutil.copytree(whole, tmp_path / "run")
    before, trials = read_results(folder), len(read_trials(folder))
    (folder / "cells.json").unlink()
    options = replace(options_in(tmp_path), backend=NoBackend)
    run(smoke(*LATENCY), Site(), RunFolder(folder), ignore, options)
    assert read_results(folder) == before
    assert len(read_trials(folder)) == trials
    assert [entry.measurement.planned.purpose for entry in read_trials(folder)].count("latency") == 1


def test_a_framework_that_dies_is_a_finding(ran):
    """The run ends in order; the cell says why."""
    folder, _ = ran("settings.capacity.mistake=die", "settings.capacity.every=2000")
    result = read_results(folder)[0]
    assert result.status == "failed"
    assert "died 2 times" in result.reason


def test_a_cell_that_no_plugin_can_do_is_unsupported(ran):
    """With the reason, and without a trial."""
    folder, _ = ran("systems=capacity/tcp", "load.entropy=1")
    result = read_results(folder)[0]
    assert (result.status, result.estimate_hz, result.trials) == ("unsupported", None, 0)
    assert "cannot carry a binary filler" in result.reason


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, smoke):
    """Finished cells are not measured again; the search of an unfinished cell knows its earlier trials."""
    whole = smoke("grid.message_size=100 B, 1 kB")
    store = RunFolder.create(tmp_path, "smoke")
    with pytest.raises(KeyboardInterrupt):
        run(whole, Site(), store, interrupt_after(7), options_in(tmp_path))
    before = (store.folder / "trials.jsonl").read_bytes()
    run(whole, Site(), RunFolder(store.folder), ignore, options_in(tmp_path))
    assert (store.folder / "trials.jsonl").read_bytes().startswith(before)
    results = read_results(store.folder)  # of a busy machine they may be unstable
    assert [result.message_bytes for result in results] == [100, 1000]
    assert all(result.trials and result.status != "failed" for result in results)
    numbers = [(entry.cell, entry.measurement.planned.number) for entry in read_trials(store.folder)]
    assert len(numbers) == len(set(numbers))


def interrupt_after(trials):
    """Return a listener that presses Ctrl-C when so many trials have ended."""
    left = trials

    def notify(event):
        nonlocal left
        left -= isinstance(event, TrialFinished)
        if left == 0:
            raise KeyboardInterrupt

    return notify


def options_in(folder):
    return RunOptions("bench run", folder / "cache", folder / "children")


def test_the_data_folder_is_gone_after_a_run(ran_once):
    """Only results stay."""
    folder, _ = ran_once(*LATENCY)
    assert not (folder / "data").exists()


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminate"])
def test_a_run_that_is_asked_to_stop_ends_with_130(tmp_path, request, kill):
    """It says how to go on."""
    command = [sys.executable, "-m", "bench", "run", "scenarios/smoke.yaml", "--out", str(tmp_path)]
    child = subprocess.Popen(
        command, cwd=request.config.rootpath, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("*/trials.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child.send_signal(kill)
    _, said = child.communicate(timeout=30)
    assert child.returncode == 130
    assert f"go on with --resume {next(tmp_path.iterdir())}" in said
