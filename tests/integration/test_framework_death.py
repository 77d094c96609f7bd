"""A framework that is killed in a trial is a finding of that trial; it comes back, and the run goes on."""

import os
import signal

import psutil
import pytest

from bench.analysis.verdict import Rules, judge
from bench.config.scenario import Grid, LoadSettings, Scenario, Search, Timing
from bench.config.site import Site
from bench.plugins.environments import environments
from bench.runner.progress import TrialProgress
from bench.runner.run import RunOptions, run
from bench.services.python_environments import missing_reason
from bench.storage.run_folder import RunFolder, read_results, read_trials
from bench.units import Rate, Seconds, Share, Size

SIZES = (10_000, 20_000)


class Killer:
    """A listener that kills a process of the framework, once, in the middle of the second trial."""

    def __init__(self, module):
        self._module, self.killed = module, None

    def __call__(self, event):
        if not isinstance(event, TrialProgress):
            return
        if self.killed is None and event.planned.number == 1 and event.phase == "measuring":
            for process in psutil.Process().children(recursive=True):
                if self._module in _words(process):
                    os.kill(process.pid, signal.SIGKILL)
                    self.killed = process.pid
                    return


def _words(process):
    """Its command line; empty for one that has just ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.parametrize(
    ("system", "module", "load"),
    [
        ("command/tcp", "frameworks.command.example", LoadSettings(by="inline")),
        pytest.param("bytewax/kafka", "frameworks.bytewax.worker", LoadSettings(), marks=pytest.mark.real),
    ],
)
def test_a_killed_framework_is_a_finding_and_comes_back(system, module, load, tmp_path, env):
    """The trial says so, and its rate is asked for again; later trials are whole, and the next cell has its own."""
    framework = system.partition("/")[0]
    if framework in environments() and (reason := missing_reason(environments()[framework], env.cache)) is not None:
        pytest.skip(reason)
    scenario = Scenario(
        "death",
        (system,),
        Grid(tuple(map(Size, SIZES))),
        load=load,
        search=Search(
            "bisection", Share(0.5), Seconds(60), start=Rate(50), highest=Rate(200)
        ),  # it keeps up: no long drain
        timing=Timing(Seconds(0.5), Seconds(2), Seconds(10), warm_up=Seconds(0)),
    )
    killer = Killer(module)
    store = RunFolder.create(tmp_path, "death")
    run(scenario, Site(shared_machine=True), store, killer, RunOptions("bench run", env.cache, tmp_path / "children"))
    assert killer.killed is not None
    trials, results = read_trials(store.folder), read_results(store.folder)
    endings = [entry.measurement.ended for entry in trials]
    assert endings.count("framework died") == 1
    died = endings.index("framework died")
    verdict = judge(trials[died].measurement, Rules(scenario.objectives, 0.5))
    assert (verdict.word, verdict.why) == ("overloaded", "died")
    later = [entry.measurement for entry in trials[died + 1 :]]
    assert later[0].planned.rate == trials[died].measurement.planned.rate
    assert all(seen.processed == seen.sent > 0 for seen in later if seen.drained)
    assert any(seen.drained for seen in later)
    assert {entry.cell.message_bytes for entry in trials[died + 1 :]} == set(SIZES)
    assert [result.message_bytes for result in results] == list(SIZES)
    assert not any("died" in (result.reason or "") for result in results)
    assert [result.remark for result in results] == [None, None]  # both verify every body
