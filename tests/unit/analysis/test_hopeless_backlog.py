"""A trial is given up by one rule, in the harness as in its simulation."""

import numpy as np
import pytest

from bench.analysis.hopeless_backlog import max_growth, recent_seconds
from bench.model.measurement import PlannedTrial
from bench.runner.trial_state import TrialState
from bench.simulation.capacity import TICK_S
from bench.simulation.faults import Counters
from bench.simulation.fluid import hopeless_after
from bench.workload.delivery_counts import ProcessingReport, SequenceSums
from bench.workload.load_spec import LoadSpec

RATE_HZ, PLANNED = 1000.0, PlannedTrial(0, 1000.0, 1.0, 20.0, "search")


@pytest.mark.parametrize(
    ("interval", "begin", "least"), [(0.0, 2.0, 0.0), (0.5, 2.0, 625.0), (1.0, 3.0, 1250.0), (2.0, 6.0, 2500.0)]
)
def test_a_quarter_of_the_due_messages_may_wait(interval: float, begin: float, least: float) -> None:
    """And those of one interval and a quarter. Before two seconds and three batches nothing is given up."""
    seconds = np.array([begin - 0.01, begin, 3 * begin])
    shares = [max(250 * begin, least) + 10, max(750 * begin, least) + 10]
    assert max_growth(seconds, RATE_HZ, interval).tolist() == [np.inf, *shares]


@pytest.mark.parametrize(("interval", "seconds"), [(0.0, 0.5), (0.2, 0.5), (2.0, 3.0)])
def test_the_recent_backlog_holds_a_whole_batch(interval: float, seconds: float) -> None:
    """The smallest backlog of one and a half batches, and of half a second at least, is the recent one."""
    assert recent_seconds(interval) == seconds


def test_batches_that_end_late_once_are_not_given_up():
    """Ends of batches of 1 s that a real Spark reported, which then sustained a higher rate.

    It was given up after 4 s, as overloaded, with less than one interval's messages more waiting than before.
    """
    ends = ((2.1, 730), (3.5, 1570), (4.1, 2727), (4.7, 3729), (5.6, 4500), (6.5, 5500), (7.5, 6500))
    at = np.arange(1, 76) * TICK_S
    processed = [max((count for end, count in ends if end <= second), default=0) for second in at]
    assert _given_up_by_harness(processed, 1.0) is None


def _given_up_by_harness(processed: list[int], interval: float) -> int | None:
    """Return after how many ticks the harness gives up a trial with these counts at the ends of ticks."""
    state = TrialState(PLANNED, LoadSpec(1, RATE_HZ, 0.0, 21.0, 100, 0.0, 0.5), interval)
    done = 0
    for tick, count in enumerate(processed, 1):
        numbers = range(done, count)
        if numbers:
            sums = SequenceSums(0, len(numbers), sum(numbers), sum(n * n for n in numbers))
            state.add_report(ProcessingReport(tick * TICK_S, 1, [sums]))
        state.add_row(tick * TICK_S, moved=bool(numbers))
        done = count
        if state.is_hopeless(tick * TICK_S):
            return tick
    return None


@pytest.mark.parametrize("interval", [0.0, 1.0])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 1.0])
def test_harness_and_simulation_give_up_the_same_trial(share: float, interval: float) -> None:
    """They do so at the same moment, to a few ticks, unless the backlog grows hardly faster than it may."""
    at = np.arange(1, 211) * TICK_S
    shown = np.floor(at / interval) * interval if interval else at
    processed, due = np.floor(share * RATE_HZ * shown), np.floor(RATE_HZ * at)
    simulated = hopeless_after(PLANNED, Counters(at, due, due, processed), interval)
    real = _given_up_by_harness([int(count) for count in processed], interval)
    assert (simulated is None) == (real is None) == (share > 0.75)
    assert simulated is None or real is None or abs(simulated - real) <= 3
