"""A verdict tells a sustained rate from an overloaded one, and both from an invalid trial."""

import pytest
from msgspec.structs import replace

from bench.analysis.verdict import Rules, judge, judge_backlog
from bench.config.scenario import Objectives
from bench.model.measurement import Latency, Measurement, PlannedTrial, Series
from bench.units import Seconds

RATE, SETTLE, WINDOW = 1000.0, 2.0, 10.0


def trial(capacity=2000.0, interval=0.0, **changes):
    """Return a trial at 1,000 messages/s of a system that processes `capacity` messages/s, as a fluid."""
    steps = range(int((SETTLE + WINDOW) / (interval or 0.1)) + 1)
    at = [step * (interval or 0.1) for step in steps]
    offered = [round(RATE * time) for time in at]
    processed = [round(min(RATE, capacity) * max(0.0, time - interval)) for time in at]
    measurement = Measurement(
        PlannedTrial(1, RATE, SETTLE, WINDOW, "search"), "", "complete", interval, 12.5, offered[-1], offered[-1], 0,
        offered[-1], 0, 0, 0, 0, drained=True, late=0.0, blocked=0.0, cpu_requested_s=0.0, cpu_used_s=0.0,
        series=Series(at, offered, offered, processed),
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
    """An overload of five percent shows within the window, and a sustained rate never shows one."""
    assert word(trial(capacity, interval))[0] == expected


@pytest.mark.parametrize("capacity", [300, 700, 900])
def test_the_loss_gives_the_capacity(capacity):
    """The capacity is rate x (1 - loss)."""
    judgement = judge_backlog(trial(capacity), 0.05)
    assert RATE * (1 - judgement.loss) == pytest.approx(capacity, rel=0.02)


def test_what_was_processed_until_a_trial_was_dropped_gives_the_capacity():
    """It was busy until then: at 300/s for 12 s of load and 8 s of its drain."""
    given_up = trial(300)
    at = [step * 0.1 for step in range(201)]
    offered = [round(RATE * min(time, SETTLE + WINDOW)) for time in at]
    series = Series(at, offered, offered, [round(300 * time) for time in at])
    dropped = replace(given_up, series=series, processed=6000, sent=12000, lost=6000, drained=False, purged=True)
    verdict = judge(dropped, Rules())
    assert (verdict.word, verdict.why) == ("overloaded", "backlog grew")
    assert RATE * (1 - verdict.loss) == pytest.approx(300, rel=0.02)


def test_a_constant_backlog_is_no_overload():
    """A system that is always two seconds behind sustains the rate: latency is not loss."""
    steady = trial()
    behind = [max(0, count - 2000) for count in steady.series.offered]
    assert word(replace(steady, series=replace(steady.series, processed=behind)))[0] == "sustained"


def test_a_pause_that_is_caught_up_is_no_overload():
    """A backlog that returns to its minimum is sustained."""
    steady = trial()
    series = steady.series
    paused = [0 if 5 <= at < 6.5 else p for at, p in zip(series.at, series.processed, strict=True)]
    paused = [max(paused[: i + 1]) for i in range(len(paused))]
    assert word(replace(steady, series=replace(series, processed=paused)))[0] == "sustained"


def test_a_late_generator_makes_the_trial_invalid():
    """A generator that was late while the source was ready measured itself."""
    assert word(trial(late=1.0, blocked=0.0)) == ("invalid", "generator")


def test_a_late_generator_is_never_taken_for_overload():
    """The trial is invalid even if the backlog, counted from the due times, grows."""
    assert word(trial(capacity=500, late=5.0, blocked=0.5)) == ("invalid", "generator")


def test_a_source_that_pushed_back_is_the_systems_limit():
    """A generator that was late because the source did not accept messages shows an overload."""
    assert word(trial(late=1.0, blocked=1.2)) == ("overloaded", "the source pushed back")


def test_a_dead_load_is_our_fault():
    """A trial whose load generator died is invalid, so that the search does not learn from it."""
    assert word(trial(ended="load died"))[0] == "invalid"


def test_a_trial_without_its_host_is_invalid():
    """The verdict has the note of the measurement."""
    note = "kafka at b1:9092: no connection (No route to host)"
    assert word(trial(ended="host gone", note=note)) == ("invalid", note)


def test_a_dead_framework_is_overload():
    """A framework that died under load is overloaded."""
    assert word(trial(ended="framework died")) == ("overloaded", "died")


def test_cpu_cost_that_was_not_used_makes_the_trial_invalid():
    """A trial whose messages did not use their CPU cost measures another cell."""
    assert word(trial(cpu_requested_s=10.0, cpu_used_s=9.0))[0] == "invalid"


def test_a_machine_that_did_other_work_makes_the_trial_invalid():
    """A trial on a machine half of whose CPU time went to other work is invalid."""
    cpu = {"busy": 19.0, "steal": 0.0, "available": 20.0, "framework": 6.0, "load": 2.0, "source": 1.0, "harness": 0.5}
    assert word(trial(cpu=cpu)) == ("invalid", "other work took 48% of this machine")


@pytest.mark.parametrize("ended", ["framework died", "source died"])
def test_what_a_dead_process_used_is_not_other_work(ended):
    """The CPU time of a dead process is not taken for other work, so that its death is the verdict."""
    cpu = {"busy": 19.0, "steal": 0.0, "available": 20.0, "framework": 2.0, "load": 2.0, "source": 1.0, "harness": 0.5}
    assert word(trial(ended=ended, cpu=cpu))[0] == "overloaded"


@pytest.mark.parametrize(
    ("share", "capacity", "expected"),
    [(0.10, 950, "invalid"), (0.01, 950, "overloaded"), (0.10, 500, "overloaded"), (0.10, 2000, "sustained")],
    ids=["as large as the overload", "too small to matter", "far smaller than the overload", "no overload"],
)
def test_an_overload_that_other_work_may_have_made_is_none(share, capacity, expected):
    """On a full machine, an overload no larger than the share of other work is invalid."""
    cpu = {"busy": 20.0, "steal": 0.0, "available": 20.0, "framework": 20.0 * (1 - share), "kernel": 0.0}
    assert word(trial(capacity, cpu=cpu))[0] == expected


@pytest.mark.parametrize("what", ["lost", "duplicated", "corrupted", "out_of_order"])
def test_wrong_delivery_counts_are_overload(what):
    """A rate at which messages are lost, duplicated, corrupted or reordered is not sustained."""
    assert word(trial(**{what: 1})) == ("overloaded", f"1 {what}")


def test_a_loss_that_the_scenario_allows_is_allowed():
    """As many lost messages as the objective allows are sustained."""
    assert word(trial(lost=3), Rules(Objectives(loss=3)))[0] == "sustained"


def test_a_missed_latency_objective_is_overload():
    """A rate whose p99 exceeds the objective is not sustained."""
    slow = trial(from_due=Latency(p99=2.5))
    assert word(slow, Rules(Objectives(p99=Seconds(2))))[0] == "overloaded"


def test_what_does_not_drain_is_overload():
    """A system that does not process all sent messages is overloaded."""
    assert word(trial(drained=False)) == ("overloaded", "did not drain")


def test_a_batch_longer_than_the_window_is_overload():
    """A counter that never moves is overloaded, though it shows no drift."""
    steady = trial(interval=1.0)
    stuck = replace(steady.series, processed=[0] * len(steady.series.at))
    assert word(replace(steady, series=stuck))[0] == "overloaded"
