"""The first result of a trial tells the latency, whatever the rate and the rows are."""

import pytest

from bench.analysis.first_result import first_result_s


@pytest.mark.parametrize(
    ("rate", "step", "latency", "least", "most"),
    [
        (1000.0, 0.1, 2.0, 1.85, 2.0),
        (1000.0, 0.1, 0.02, 0.0, 0.1),
        (0.1, 0.1, 0.3, 0.1, 0.3),
        (50.0, 10.0, 0.02, 0.0, 0.02),
    ],
    ids=["long", "short", "a message in ten seconds", "rows of another tool"],
)
def test_the_first_result_is_as_late_as_the_latency(rate, step, latency, least, most):
    """It is never said to be later than it was: it lies behind the row before."""
    at = [step * row for row in range(1, 400)]
    offered, processed = ([max(0, int(rate * (time - late) + 1e-9)) for time in at] for late in (0.0, latency))
    assert least <= first_result_s(at, offered, processed, rate) <= most + 1e-9


def test_a_trial_without_a_result_has_none():
    """Nothing is known of its latency."""
    assert first_result_s([0.1, 0.2], [1, 2], [0, 0], 10.0) is None
