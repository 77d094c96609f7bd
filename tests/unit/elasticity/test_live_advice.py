"""Advice from a short calibration follows from the true rates of workers, and says what it cannot know."""

import pytest
from sample_policies import make_decision

from bench.elasticity.advice import Amount, Deployed, Question
from bench.elasticity.live_advice import CountedWork, advise_from_workers, median_interval

ONE = Deployed(1, 1, "settings.x.workers")
DECISIONS = [make_decision(5.0 * number, 8.0, 1, 1) for number in range(1, 8)]


def ask(rate, decisions=DECISIONS, *, size=1000, cost=0.1, throttled=False, deployed=ONE):
    question = Question(rate, size, cost, headroom=0.2)
    return advise_from_workers(question, CountedWork("x/s", deployed, 1000, 0.1, throttled, decisions))


def test_the_workers_follow_from_their_true_rate_and_the_headroom():
    """10 messages/s each, of which 8 are used: 25/s need four, however busy they were."""
    found = ask(25.0)
    assert (found.workers, found.cores) == (Amount(4, 4), Amount(4, 4))
    assert (found.low_hz, found.estimate_hz, found.high_hz) == (10.0, 10.0, 10.0)
    assert found.extrapolated == ("cores",)
    assert "7 intervals with 1 worker at most" in found.notes[0]
    assert ask(8.0).extrapolated == ()


def test_nothing_is_said_about_cores_of_throttled_workers():
    """They slept."""
    found = ask(25.0, throttled=True)
    assert (found.workers, found.cores) == (Amount(4, 4), Amount())
    assert "nothing is known of cores" in found.notes[1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"size": 2000}, "its workers were measured at 1 kB, 100 ms alone"),
        ({"cost": 0.2}, "its workers were measured at 1 kB, 100 ms alone"),
        ({"decisions": DECISIONS[:5]}, "5 intervals in which messages were processed; 6 are needed"),
        ({"deployed": Deployed(1, 1, link=1000.0)}, "the network carries 1 /s of this size at most"),
    ],
    ids=str,
)
def test_what_was_not_measured_has_no_advice(options, reason):
    """The reason says why."""
    found = ask(25.0, **options)
    assert reason in found.reason
    assert found.workers == Amount()


def test_the_interval_of_a_median_narrows_with_more_values():
    """Of six it is the least and the greatest: both lie on one side of the median in 3 of 100 samples."""
    assert median_interval(range(6)) == (0, 2.5, 5)
    assert median_interval(range(9)) == (1, 4, 7)
    low, _, high = median_interval(range(200))
    assert (high - low) / 200 < 0.15
