"""Runs in which one process is killed in the middle of the second trial, and what must be true of them."""

import os
import signal

import psutil
from uncalibrated import Uncalibrated

from bench.analysis.verdict import Rules, judge
from bench.config.scenario import Grid, LoadSettings, Scenario, Search, Timing
from bench.config.site import Site
from bench.runner.progress import TrialProgress
from bench.runner.run import RunOptions, run
from bench.storage.run_folder import RunFolder, read_results, read_trials
from bench.units import Rate, Seconds, Share, Size

PRECISION = 0.5


class Killer:
    """A listener that kills the first process whose command line is a victim's, once."""

    def __init__(self, is_victim):
        self._is_victim, self.killed = is_victim, None

    def __call__(self, event):
        if not isinstance(event, TrialProgress):
            return
        if self.killed is None and event.planned.number == 1 and event.phase == "measuring":
            for process in psutil.Process().children(recursive=True):
                if self._is_victim(_words(process)):
                    os.kill(process.pid, signal.SIGKILL)
                    self.killed = process.pid
                    return


def run_with_death(system, sizes, is_victim, folder, env, *, site=None, load=None, settings=None):
    """Run a cell of each size; return the folder of the run once a victim was killed."""
    scenario = Scenario(
        "death",
        (system,),
        Grid(tuple(map(Size, sizes))),
        load=load or LoadSettings(),
        search=Search(
            "bisection", Share(PRECISION), Seconds(60), start=Rate(50), highest=Rate(200)
        ),  # it keeps up: no long drain
        timing=Timing(Seconds(0.5), Seconds(2), Seconds(10), warm_up=Seconds(0)),
        settings=settings or {},
    )
    killer, store = Killer(is_victim), RunFolder.create(folder, "death")
    options = RunOptions("bench run", env.cache, folder / "children", backend=Uncalibrated)
    run(scenario, site or Site(shared_machine=True), store, killer, options)
    assert killer.killed is not None
    return store.folder


def check_death_is_a_finding(folder, sizes, *, ended, why):
    """Assert that one trial says so, that its rate is tried again, and that all later trials and cells are whole."""
    trials, results = read_trials(folder), read_results(folder)
    endings = [entry.measurement.ended for entry in trials]
    assert endings.count(ended) == 1
    died = endings.index(ended)
    verdict = judge(trials[died].measurement, Rules(precision=PRECISION))
    assert (verdict.word, verdict.why) == ("overloaded", why)
    later = [entry.measurement for entry in trials[died + 1 :]]
    assert later[0].planned.rate == trials[died].measurement.planned.rate
    assert all(seen.processed == seen.sent > 0 for seen in later if seen.drained)
    assert any(seen.drained for seen in later)
    assert {entry.cell.message_bytes for entry in trials[died + 1 :]} == set(sizes)
    assert [result.message_bytes for result in results] == list(sizes)
    assert not any("died" in (result.reason or "") for result in results)


def _words(process):
    """Its command line; empty for one that has just ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []
