"""Each objective has its own result from the same trials."""

from msgspec.structs import replace
from sample_runs import make_measurement

from bench.analysis.stability import Stability
from bench.analysis.verdict import Rules, judge
from bench.config.scenario import Objectives
from bench.model.measurement import Latency
from bench.search.objectives import AssessedTrial, estimate_objectives
from bench.search.two_counter import TwoCounter
from bench.simulation.capacity import Traits
from bench.simulation.driver import Case
from bench.simulation.faults import Faults
from bench.simulation.fluid import Fluid
from bench.units import Seconds

CALM = Traits(1000.0, noise=0.005, pause_gap=0.0, warm_up=0.0)


def searched(p99_breaks_at, *, other_work=0.0):
    """Return the result of a search with a p99 of 3 s above a rate and 1 s below; the objective is 2 s.

    Other work takes a share of the machine meanwhile.
    """
    objectives = Objectives(p99=Seconds(2))
    problem, system = replace(Case("p99", CALM).problem, objectives=objectives), Fluid(CALM, Faults(), 1)
    search = TwoCounter(problem)
    while (planned := search.next_trial()) is not None:
        measurement = system.run_trial(planned, 30.0)
        cpu = dict.fromkeys(("framework", "source", "load", "harness", "kernel", "steal"), 0.0)
        seconds = {"seconds": planned.window, "available": 2 * planned.window}
        measurement = replace(
            measurement,
            from_due=Latency(p99=3.0 if planned.rate > p99_breaks_at else 1.0),
            cpu=cpu | seconds | {"busy": other_work * seconds["available"]},
        )
        search = search.after(measurement, judge(measurement, Rules(objectives, 0.1)))
    return search.result()


def test_each_objective_has_its_own_interval():
    """The p99 is exceeded above 600/s, the backlog grows above 1000/s, and each interval is about its own limit."""
    result = searched(600.0)
    by_name = {each.name: each for each in result.objectives}
    assert by_name.keys() == {"backlog", "loss", "p99"}
    assert by_name["p99"].low_hz < 600 < by_name["p99"].high_hz
    assert by_name["backlog"].estimate_hz is None or by_name["backlog"].estimate_hz > 800
    assert by_name["p99"].kept_hz <= 600


def test_a_rate_beside_other_work_is_no_bound_of_the_rate_that_keeps_a_latency():
    """Other work explains the missed p99; what was processed says nothing of the latency without it."""
    result = searched(600.0, other_work=0.05)
    assert (result.status, result.low_hz, result.high_hz) == ("not-measured", None, None)
    assert "other work took 5%" in (result.reason or "")
    alone = searched(600.0)
    assert alone.status == "measured"
    assert alone.low_hz < 600 < alone.high_hz


def test_an_objective_that_was_always_met_is_a_lower_bound():
    """Without any lost message the bound is the highest rate that was tried."""
    loss = next(each for each in searched(600.0).objectives if each.name == "loss")
    assert (loss.estimate_hz, loss.high_hz) == (None, None)
    assert loss.low_hz == loss.kept_hz > 600


def test_a_rate_whose_backlog_grew_is_not_kept():
    """Also where the trial drained, and its counters show no loss."""
    measurement = replace(make_measurement(0, 100.0, 200.0), drained=True)
    stability = Stability(overloaded=False, loss=0.0, seconds=10.0)
    kept, grown = (
        estimate_objectives([AssessedTrial(measurement, stability, backlogged=word)], Objectives(), 1.0, 1.0)[0]
        for word in (False, True)
    )
    assert (kept.name, kept.kept_hz, grown.kept_hz) == ("backlog", 100.0, None)
