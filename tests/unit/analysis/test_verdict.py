"""A verdict tells a sustained rate from an overloaded one, and both from an invalid trial."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bench.analysis.stability import assess_stability
from bench.analysis.verdict import GENERATOR_LATE, Rules, judge
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


def test_refused_and_lost_messages_count_together():
    """A limit of five allows three refused ones and two that were lost, not five of each."""
    rules = Rules(Objectives(loss=5))
    assert word(trial(failed=3, lost=2), rules)[0] == "sustained"
    assert word(trial(failed=5, lost=5), rules) == ("overloaded", "5 lost")


def test_a_refused_message_within_the_limit_does_not_excuse_a_late_generator():
    """The source did not push back."""
    rules = Rules(Objectives(loss=5))
    assert word(trial(late=0.5, failed=1), rules) == word(trial(late=0.5), rules) == ("invalid", GENERATOR_LATE)


@pytest.mark.parametrize("capacity", [300, 700, 900])
def test_the_loss_gives_the_capacity(capacity):
    """The capacity is rate x (1 - loss)."""
    judgement = assess_stability(trial(capacity), 0.05)
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


def test_cpu_cost_of_which_a_program_says_nothing_is_not_judged():
    """Nobody knows what it used."""
    assert word(trial(cpu_requested_s=10.0, cpu_used_s=None))[0] == "sustained"


@pytest.mark.parametrize("ended", ["framework died", "source died"])
def test_what_a_dead_process_used_is_not_other_work(ended):
    """The CPU time of a dead process is not taken for other work, so that its death is the verdict."""
    cpu = {"busy": 19.0, "steal": 0.0, "available": 20.0, "framework": 2.0, "load": 2.0, "source": 1.0, "harness": 0.5}
    assert word(trial(ended=ended, cpu=cpu))[0] == "overloaded"


def machine(foreign=0.0, *, steal=0.0, busy=0.5):
    """Return the CPU seconds of a window of 10 s on 2 cores of which foreign work took a share."""
    ours = 20.0 * busy
    return {"seconds": 10.0, "available": 20.0, "framework": ours, "busy": ours + 20.0 * foreign, "steal": 20 * steal}


@pytest.mark.parametrize("busy", [0.4, 0.75], ids=["half idle", "nearly full"])
@pytest.mark.parametrize(
    ("share", "capacity", "expected"),
    [
        (0.10, 950, "invalid"),
        (0.10, 800, "invalid"),
        (0.05, 950, "invalid"),
        (0.25, 500, "invalid"),
        (0.01, 950, "overloaded"),
        (0.10, 500, "overloaded"),
        (0.10, 2000, "sustained"),
        (0.25, 2000, "sustained"),
    ],
    ids="{}".format,
)
@pytest.mark.parametrize("stolen", [False, True], ids=["other processes", "hypervisor"])
def test_an_overload_that_other_work_can_explain_is_invalid(share, capacity, expected, busy, stolen):
    """Foreign work explains a loss of up to three times its share; a sustained rate is sustained whatever else ran."""
    cpu = machine(steal=share, busy=busy) if stolen else machine(share, busy=busy)
    verdict = judge(trial(capacity, cpu=cpu), Rules())
    assert verdict.word == expected
    if expected == "invalid":
        assert (verdict.why, verdict.cause) == (f"other work took {share:.0%} of a machine", "other work")


def test_a_larger_overload_says_what_other_work_explains():
    """Alone, the system would have lost at least the rest."""
    verdict = judge(trial(500, cpu=machine(0.10)), Rules())
    assert verdict.loss == pytest.approx(0.5, rel=0.02)
    assert 0.2 < verdict.explained < verdict.loss


def test_time_stolen_on_a_host_of_the_site_is_other_work():
    """It is what is known of those hosts."""
    hosts = {"b1": {"steal": 0.0, "available": 40.0}, "b2": {"steal": 4.0, "available": 40.0}}
    assert judge(trial(900, hosts=hosts), Rules()).cause == "other work"
    assert word(trial(900, hosts={"b1": hosts["b1"]}))[0] == "overloaded"
    assert word(trial(2000, hosts=hosts))[0] == "sustained"


def test_a_generator_that_other_work_made_late_is_not_the_limit():
    """The trial is invalid because of the other work, so that the generator's limit is not lowered."""
    assert judge(trial(late=1.0, cpu=machine(0.20)), Rules()).cause == "other work"
    assert judge(trial(late=1.0, cpu=machine(0.0)), Rules()).cause == "generator"


def with_slow_generator(share, capacity=2000.0, *, confirmed=True):
    """Return a trial whose generator sent only a share of the rate; the source did not push back."""
    steady = trial(capacity)
    sent = [round(share * offered) for offered in steady.series.offered]
    done = [min(count, round(capacity * at)) for count, at in zip(sent, steady.series.at, strict=True)]
    late = (1 - share) * (SETTLE + WINDOW) if confirmed else 0.0
    return replace(steady, late=late, sent=sent[-1], series=replace(steady.series, sent=sent, processed=done))


@pytest.mark.parametrize("share", [0.985, 0.982])
def test_a_generator_slightly_too_slow_is_no_overload(share):
    """The backlog consists of messages that were not sent."""
    assert word(with_slow_generator(share)) == ("invalid", "generator")


def test_a_slow_generator_does_not_hide_an_overload():
    """The backlog grows by more than what was not sent."""
    assert word(with_slow_generator(0.985, 900.0))[0] == "overloaded"


def test_messages_that_the_source_has_not_confirmed_are_not_the_generators():
    """A generator on time has sent them: that the source falls behind with them is the system's limit."""
    assert word(with_slow_generator(0.97, confirmed=False))[0] == "overloaded"


def test_only_time_blocked_while_late_counts_as_pushed_back():
    """A source that pushed back early in the trial does not explain a generator late at its end."""
    assert word(trial(late=1.0, blocked=5.0, blocked_late=0.1)) == ("invalid", "generator")
    assert word(trial(late=1.0, blocked=5.0, blocked_late=1.0)) == ("overloaded", "the source pushed back")


@pytest.mark.parametrize(
    ("capacity", "stalled", "expected"), [(970, 0.3, "invalid"), (970, 0.05, "overloaded"), (500, 0.3, "overloaded"),
                                          (970, None, "overloaded"), (2000, 0.3, "sustained")]
)  # fmt: skip
def test_an_overload_that_the_generators_stall_explains_is_not_the_systems(capacity, stalled, expected):
    """A system near its limit has nothing to do while the generator stalls, and cannot make up for it."""
    assert judge(trial(capacity, stalled=stalled), Rules()).word == expected


@pytest.mark.parametrize(
    ("p99", "stalled", "expected"), [(2.4, 0.5, "invalid"), (4.0, 0.5, "overloaded"), (2.4, 0.0, "overloaded"),
                                     (2.1, 0.15, "overloaded")]
)  # fmt: skip
def test_a_latency_that_the_generators_stall_explains_is_not_the_systems(p99, stalled, expected):
    """It is invalid if p99 without the stall would have met the objective."""
    rules = Rules(Objectives(p99=Seconds(2)))
    assert judge(trial(from_due=Latency(p99=p99), stalled=stalled), rules).word == expected


@pytest.mark.parametrize(("p99", "expected"), [(2.5, "invalid"), (9.0, "overloaded"), (1.9, "sustained")])
def test_a_latency_that_other_work_explains_is_not_the_systems(p99, expected):
    """Work that took 10 % of the machine delays no message by more than three times a tenth of the window."""
    rules = Rules(Objectives(p99=Seconds(2)))
    assert judge(trial(from_due=Latency(p99=p99), cpu=machine(0.1)), rules).word == expected


@given(capacity=st.floats(300, 3000), foreign=st.floats(0, 0.4), steal=st.floats(0, 0.4), busy=st.floats(0, 0.6))
def test_more_foreign_work_never_makes_an_overload_certain(capacity, foreign, steal, busy):
    """It turns an overload into an invalid trial and touches no other verdict."""
    alone = judge(trial(capacity), Rules())
    beside = judge(trial(capacity, cpu=machine(foreign, steal=steal, busy=busy)), Rules())
    assert beside.word in ({"overloaded", "invalid"} if alone.word == "overloaded" else {alone.word})
    assert beside.loss - beside.explained <= alone.loss


@pytest.mark.parametrize("what", ["lost", "duplicated", "corrupted", "out_of_order"])
def test_wrong_delivery_counts_are_overload(what):
    """A rate at which messages are lost, duplicated, corrupted or reordered is not sustained."""
    assert word(trial(**{what: 1})) == ("overloaded", f"1 {what}")


def test_a_loss_that_the_scenario_allows_is_allowed():
    """As many lost messages as the objective allows are sustained."""
    assert word(trial(lost=3), Rules(Objectives(loss=3)))[0] == "sustained"


def test_a_lower_bound_of_losses_shows_no_limit():
    """Counts that may be too low do not show that an objective is met."""
    inexact = trial(lost=3, counts_exact=False)
    assert word(inexact, Rules(Objectives(loss=3))) == ("overloaded", "at least 3 lost")


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
