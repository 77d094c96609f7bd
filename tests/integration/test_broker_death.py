"""A broker that is killed in the middle of a trial is a finding of that trial; it comes back, and the run goes on."""

import os
import signal

import psutil
import pytest

from bench.analysis.verdict import Rules, judge
from bench.config.scenario import Grid, Scenario, Search, Timing
from bench.config.site import Site
from bench.runner.progress import TrialProgress
from bench.runner.run import RunOptions, run
from bench.storage.run_folder import RunFolder, read_results, read_trials
from bench.units import Rate, Seconds, Share, Size

pytestmark = pytest.mark.real

MAINS = {"kafka": "kafka.Kafka", "pulsar": "org.apache.pulsar.PulsarStandaloneStarter"}


class Killer:
    """A listener that kills the broker whose data lies in a folder, once, in the middle of the second trial."""

    def __init__(self, source, folder):
        self._main, self._folder, self.killed = MAINS[source], str(folder), None

    def __call__(self, event):
        if not isinstance(event, TrialProgress):
            return
        if self.killed is None and event.planned.number == 1 and event.phase == "measuring":
            for process in psutil.Process().children(recursive=True):
                words = _words(process)
                if self._main in words and any(self._folder in word for word in words):
                    os.kill(process.pid, signal.SIGKILL)
                    self.killed = process.pid


def _words(process):
    """Its command line; empty for one that has just ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.parametrize(
    ("system", "sizes"),
    [
        ("python/kafka", (10_000, 20_000)),
        ("python/pulsar", (10_000, 20_000)),
        ("spark/kafka", (10_000,)),
        ("spark/pulsar", (10_000,)),
    ],
)
def test_a_killed_broker_is_a_finding_and_comes_back(system, sizes, tmp_path, env):
    """The trial says so, and its rate is asked for again; later trials of the cell are whole, and the next cell has
    its own.
    """
    framework, _, source = system.partition("/")
    scenario = Scenario(
        "death",
        (system,),
        Grid(tuple(map(Size, sizes))),
        search=Search(
            "bisection", Share(0.5), Seconds(60), start=Rate(50), highest=Rate(200)
        ),  # it keeps up: no long drain
        timing=Timing(Seconds(0.5), Seconds(2), Seconds(10), warm_up=Seconds(0)),
        settings={"spark": {"batch_interval": "500 ms"}} if framework == "spark" else {},
    )
    killer = Killer(source, tmp_path)
    store = RunFolder.create(tmp_path, "death")
    options = RunOptions("bench run", env.cache, tmp_path / "children")
    run(scenario, Site(shared_machine=True), store, killer, options)
    assert killer.killed is not None
    trials, results = read_trials(store.folder), read_results(store.folder)
    endings = [entry.measurement.ended for entry in trials]
    assert endings.count("source died") == 1
    died = endings.index("source died")
    verdict = judge(trials[died].measurement, Rules(scenario.objectives, 0.5))
    assert (verdict.word, verdict.why) == ("overloaded", "source died")
    later = [entry.measurement for entry in trials[died + 1 :]]
    assert later[0].planned.rate == trials[died].measurement.planned.rate
    assert all(seen.processed == seen.sent > 0 for seen in later if seen.drained)
    assert any(seen.drained for seen in later)
    assert {entry.cell.message_bytes for entry in trials[died + 1 :]} == set(sizes)
    assert [result.message_bytes for result in results] == list(sizes)
    assert not any("died" in (result.reason or "") for result in results)
