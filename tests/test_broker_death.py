"""A broker that is killed in the middle of a trial is a finding of that trial; it comes back, and the run goes on."""

import os
import signal

import psutil
import pytest

from bench import run
from bench.progress import Silent
from bench.scenario import Grid, Scenario, Search, Timing
from bench.site import Site
from bench.store import Store, read_results, read_trials
from bench.units import Seconds, Share, Size
from bench.verdict import Rules, judge

pytestmark = pytest.mark.real

MAINS = {"kafka": "kafka.Kafka", "pulsar": "org.apache.pulsar.PulsarStandaloneStarter"}


class Killer(Silent):
    """Kills the broker whose data lies in a folder, once, in the middle of the second trial."""

    def __init__(self, source, folder):
        self._main, self._folder, self.killed = MAINS[source], str(folder), None

    def glimpse(self, glimpse):
        if self.killed is None and glimpse.planned.number == 1 and glimpse.phase == "measuring":
            for process in psutil.Process().children(recursive=True):
                words = process.cmdline()
                if self._main in words and any(self._folder in word for word in words):
                    os.kill(process.pid, signal.SIGKILL)
                    self.killed = process.pid


@pytest.mark.parametrize("system", ["plain/kafka", "plain/pulsar", "spark/kafka"])
def test_a_killed_broker_is_a_finding_and_comes_back(system, tmp_path, ground):
    """The trial says so and bounds nothing; later trials of the cell are whole; the cell after it is found, too."""
    framework, _, source = system.partition("/")
    scenario = Scenario(
        "death",
        (system,),
        Grid((Size(10_000), Size(20_000))),
        search=Search("bisection", Share(0.5), Seconds(30)),
        timing=Timing(Seconds(0.5), Seconds(2), Seconds(10)),
        settings={"spark": {"batch_interval": "500 ms"}} if framework == "spark" else {},
    )
    store, killer = Store.fresh(tmp_path, "death"), Killer(source, tmp_path)
    run.run(scenario, Site(), store, killer, places=run.Places(ground.cache, tmp_path / "registry", "bench run"))
    store.close()
    assert killer.killed is not None
    trials, results = read_trials(store.folder), read_results(store.folder)
    assert [entry.measurement.ended for entry in trials].count("source died") == 1
    rules = Rules(scenario.objectives, 0.5)
    words = {entry.measurement.ended: judge(entry.measurement, rules) for entry in trials}
    assert (words["source died"].word, words["source died"].why) == ("overloaded", "source died")
    assert {result.status for result in results} <= {"measured", "lower-bound"}
    for entry in trials:
        if judge(entry.measurement, rules).word == "sustained":
            assert entry.measurement.processed == entry.measurement.sent > 0
