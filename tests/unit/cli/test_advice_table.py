"""The table of `bench advise` shows a bound as a bound, and a number with its range."""

import pytest

from bench.cli.advice_table import print_advice
from bench.elasticity.advice import Advice, Amount, Deployed, Question

QUESTION = Question(50_000.0, 10_000, 0.001, 0.2)


@pytest.mark.parametrize(
    ("workers", "low", "high", "shown"),
    [
        (Amount(12, 9), 90.0, 125.0, ("12 (9–12)", "90 /s .. 125 /s, 1 worker, 2 cores")),
        (Amount(12, 12), 90.0, 90.0, ("x/s: settings.x.processes: 12", "90 /s .. 90 /s")),
        (Amount(12, None), 90.0, None, ("≤ 12", "≥ 90 /s")),
        (Amount(None, 9), None, 125.0, ("≥ 9", "≤ 125 /s")),
    ],
    ids=["a range", "one number", "a lower bound", "an upper bound"],
)
def test_a_number_is_shown_as_it_is_known(capsys, workers, low, high, shown):
    """With the setting, and the rates of what was measured."""
    measured = Deployed(1, 2, "settings.x.processes")
    print_advice(
        QUESTION, [Advice(system="x/s", workers=workers, cores=workers, measured=measured, low_hz=low, high_hz=high)]
    )
    said = capsys.readouterr().out
    assert all(text in said for text in shown)
    assert "the run alone" in said


def test_without_any_advice_there_is_no_table(capsys):
    """Only the question, and why."""
    print_advice(QUESTION, [Advice(system="x/s", reason="failed")])
    question, why = capsys.readouterr().out.splitlines()
    assert question.startswith("50 k/s of 10 kB, 1 ms of CPU time each, with 20% free: a maximum of 62.5 k/s")
    assert why == "x/s: no advice: failed"
