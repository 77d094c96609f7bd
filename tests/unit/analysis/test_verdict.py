"""The judge tells a sustained rate from an overloaded one, and both from a trial that says nothing about the system."""

import pytest
from msgspec.structs import replace

from bench.analysis.verdict import Rules, judge, judge_backlog
from bench.config.scenario import Objectives
from bench.model.measurement import Latency, Measurement, Planned, Series
from bench.units import Seconds

RATE, SETTLE, WINDOW = 1000.0, 2.0, 10.0


def measurement(capacity=2000.0, interval=0.0, **changes):
    """A trial at 1,000 messages/s of a system that processes `capacity` a second, as a fluid."""
    steps = range(int((SETTLE + WINDOW) / (interval or 0.1)) + 1)
    at = [step * (interval or 0.1) for step in steps]
    offered = [round(RATE * time) for time in at]
    processed = [round(min(RATE, capacity) * max(0.0, time - interval)) for time in at]
    measurement = Measurement(
        Planned(1, RATE, SETTLE, WINDOW, "search"), "", "complete", interval, 12.5, offered[-1], offered[-1], 0, offered[-1],
        0, 0, 0, 0, drained=True, late=0.0, blocked=0.0, cpu_requested_s=0.0, cpu_used_s=0.0, series=Series(at, offered, offered, processed),
    )  # fmt: skip
    return replace(measurement, **changes)


def word(measurement, rules=Rules()):  # noqa: B008  frozen
    verdict = judge(measurement, rules)
    return verdict.word, verdict.why


@pytest.mark.parametrize("interval", [0.0, 1.0], ids=["continuous", "micro-batches"])
@pytest.mark.parametrize(
    ("capacity", "expected"), [(2000, "sustained"), (1001, "sustained"), (950, "overloaded"), (300, "overloaded")]
)
def test_a_system_is_overloaded_when_its_backlog_drifts(capacity, expected, interval):
    """Five percent too much is seen within the window, none at all never is."""
    assert word(measurement(capacity, interval))[0] == expected


@pytest.mark.parametrize("capacity", [300, 700, 900])
def test_the_loss_is_a_reading_of_the_ceiling(capacity):
    """Rate x (1 - loss) is the capacity."""
    judgement = judge_backlog(measurement(capacity), 0.05)
    assert RATE * (1 - judgement.loss) == pytest.approx(capacity, rel=0.02)


def test_a_constant_backlog_is_no_overload():
    """Latency is not loss: a system that is always two seconds behind keeps up."""
    steady = measurement()
    behind = [max(0, count - 2000) for count in steady.series.offered]
    assert word(replace(steady, series=replace(steady.series, processed=behind)))[0] == "sustained"


def test_a_pause_that_is_caught_up_is_no_overload():
    """The backlog returned to its floor."""
    steady = measurement()
    series = steady.series
    paused = [0 if 5 <= at < 6.5 else p for at, p in zip(series.at, series.processed, strict=True)]
    paused = [max(paused[: i + 1]) for i in range(len(paused))]
    assert word(replace(steady, series=replace(series, processed=paused)))[0] == "sustained"


def test_a_late_generator_makes_the_trial_invalid():
    """The source was ready, the generator was not: it measured itself."""
    assert word(measurement(late=1.0, blocked=0.0)) == ("invalid", "generator")


def test_a_late_generator_is_never_taken_for_overload():
    """Not even where the backlog, counted from the due times, grows."""
    assert word(measurement(capacity=500, late=5.0, blocked=0.5)) == ("invalid", "generator")


def test_a_source_that_pushed_back_is_the_systems_limit():
    """The generator was late because nobody took what it had."""
    assert word(measurement(late=1.0, blocked=1.2)) == ("overloaded", "the source pushed back")


def test_a_dead_load_is_our_fault():
    """The search must not learn from it."""
    assert word(measurement(ended="load died"))[0] == "invalid"


def test_a_host_that_is_gone_says_nothing_of_a_rate():
    """The verdict carries what was seen of it."""
    note = "kafka at b1:9092: no connection (No route to host)"
    assert word(measurement(ended="host gone", note=note)) == ("invalid", note)


def test_a_dead_framework_is_a_finding():
    """It died under load."""
    assert word(measurement(ended="framework died")) == ("overloaded", "died")


def test_cpu_cost_that_was_not_burnt_makes_the_trial_invalid():
    """A cost that burns nothing measures another cell."""
    assert word(measurement(cpu_requested_s=10.0, cpu_used_s=9.0))[0] == "invalid"


def test_a_machine_that_did_other_work_makes_the_trial_invalid():
    """Half of it was somebody else's: this is not the machine that is measured."""
    cpu = {"busy": 19.0, "steal": 0.0, "available": 20.0, "framework": 6.0, "load": 2.0, "source": 1.0, "harness": 0.5}
    assert word(measurement(cpu=cpu)) == ("invalid", "other work took 48% of this machine")


@pytest.mark.parametrize("ended", ["framework died", "source died"])
def test_what_a_dead_process_used_is_not_other_work(ended):
    """Its account went with it; its death is the finding."""
    cpu = {"busy": 19.0, "steal": 0.0, "available": 20.0, "framework": 2.0, "load": 2.0, "source": 1.0, "harness": 0.5}
    assert word(measurement(ended=ended, cpu=cpu))[0] == "overloaded"


@pytest.mark.parametrize(
    ("share", "capacity", "expected"),
    [(0.10, 950, "invalid"), (0.01, 950, "overloaded"), (0.10, 500, "overloaded"), (0.10, 2000, "sustained")],
    ids=["as large as the overload", "too small to matter", "far smaller than the overload", "no overload"],
)
def test_an_overload_that_other_work_may_have_made_is_none(share, capacity, expected):
    """On a full machine, what others do lowers the top rate by as much."""
    cpu = {"busy": 20.0, "steal": 0.0, "available": 20.0, "framework": 20.0 * (1 - share), "kernel": 0.0}
    assert word(measurement(capacity, cpu=cpu))[0] == expected


@pytest.mark.parametrize("what", ["lost", "duplicated", "corrupted", "out_of_order"])
def test_what_the_tallies_find_is_overload(what):
    """A rate at which messages go wrong is not sustained."""
    assert word(measurement(**{what: 1})) == ("overloaded", f"1 {what}")


def test_a_loss_that_the_scenario_allows_is_allowed():
    """The objective says how many."""
    assert word(measurement(lost=3), Rules(Objectives(loss=3)))[0] == "sustained"


def test_a_missed_latency_objective_is_overload():
    """Sustained means: within what was asked."""
    slow = measurement(from_due=Latency(p99=2.5))
    assert word(slow, Rules(Objectives(p99=Seconds(2))))[0] == "overloaded"


def test_what_does_not_drain_is_overload():
    """It has to be done with what was sent."""
    assert word(measurement(drained=False)) == ("overloaded", "did not drain")


def test_a_batch_longer_than_the_window_is_overload():
    """A counter that never moved shows no drift, but everything was left lying."""
    steady = measurement(interval=1.0)
    stuck = replace(steady.series, processed=[0] * len(steady.series.at))
    assert word(replace(steady, series=stuck))[0] == "overloaded"
