"""A measured rate of the two-counter search lies below an overload that was measured, and a bound was sustained."""

import pytest

from bench.analysis.verdict import Verdict
from bench.config.scenario import Search, Timing
from bench.model.cell import Cell
from bench.model.measurement import Measurement, PlannedTrial, Series
from bench.search.observations import Evidence
from bench.search.parameters import SearchParameters
from bench.search.problem import SearchProblem, Step
from bench.search.two_counter import TwoCounter
from bench.units import Seconds, Share


class LossySystem:
    """A system that loses `losses(number, rate)` of a trial, with a generator that reaches `reach` messages/s."""

    def __init__(self, losses, reach=float("inf")):
        self.losses, self.reach, self.trials = losses, reach, []

    def judged(self, planned):
        """Return the measurement of a trial and its verdict."""
        rate, span, loss = planned.rate, planned.settle + planned.window, self.losses(len(self.trials), planned.rate)
        whole, late = int(rate * span), max(0.0, span * (1 - self.reach / planned.rate))
        at = [0.5 * i for i in range(int(span / 0.5) + 1)]
        offered = [int(rate * moment) for moment in at]
        processed = [int(count * (1 - loss)) for count in offered]
        measurement = Measurement(
            planned, "", "complete", 0.0, span + 0.1, whole, whole, 0, int(whole * (1 - loss)), 0, 0, 0, 0,
            drained=True, late=late, blocked=0.0, cpu_requested_s=0.0, cpu_used_s=0.0,
            series=Series(at, offered, offered, processed),
            cpu={"busy": 0.0 if self.trials else 2.0, "available": 2.0},
        )  # fmt: skip
        if late > 0:
            return measurement, Verdict("invalid", "generator")
        self.trials.append((planned, loss))
        return measurement, Verdict("overloaded", "backlog grew", loss) if loss else Verdict("sustained")


def run_search(system, precision="10 %", budget="1200 s"):
    """Return the result of a search on such a system."""
    settings = Search(precision=Share.read(precision), budget=Seconds.read(budget))
    search = TwoCounter(
        SearchProblem(
            Cell("simulated", "fluid", 100, 0.0), settings, Timing(), batch_interval=0.0, bound_hz=None, hint_hz=None
        )
    )
    while (planned := search.next_trial()) is not None:
        search = search.after(*system.judged(planned))
    return search.result()


@pytest.mark.parametrize("reach", [8000.0, 10_500.0])
@pytest.mark.parametrize("precision", ["25 %", "10 %"])
def test_where_the_generator_ends_nothing_is_measured(reach, precision):
    """At the generator's limit the result is a lower bound, even if an early trial below it was overloaded."""
    result = run_search(
        LossySystem(lambda number, rate: 0.35 if number < 8 and 4000 < rate < 4200 else 0.0, reach), precision
    )
    assert (result.status, result.reason, result.limited_by) == ("lower-bound", "generator", "generator")
    assert result.low_hz <= reach


@pytest.mark.parametrize(("late", "limited"), [(900.0, False), (990.0, True)])
def test_a_generator_that_was_late_far_below_what_it_had_kept_was_disturbed(late, limited):
    """It kept 1000/s and was late twice: at nearly this rate that is its limit, at 10 % less it is other work."""
    problem = SearchProblem(
        Cell("simulated", "fluid", 100, 0.0), Search(), Timing(), batch_interval=0.0, bound_hz=None, hint_hz=None
    )
    kept = LossySystem(lambda *_: 0.0).judged(PlannedTrial(0, 1000.0, 0.5, 3.0, "search"))
    disturbed = LossySystem(lambda *_: 0.0, reach=late - 1).judged(PlannedTrial(1, late, 0.5, 3.0, "search"))
    steps = tuple(Step(*each) for each in (kept, disturbed, disturbed))
    assert Evidence(problem, SearchParameters(), steps, (None, None, None)).generator_limited is limited


@pytest.mark.parametrize("budget", ["20 s", "50 s", "120 s", "300 s"])
@pytest.mark.parametrize("capacity", [700.0, 1500.0, 1e9])
def test_a_bound_is_no_higher_than_what_was_processed(budget, capacity):
    """A lower bound is at most the highest processed rate, and an upper end at least the capacity."""
    system = LossySystem(lambda _, rate: max(0.0, 1 - capacity / rate))
    result = run_search(system, precision="5 %", budget=budget)
    processed = max(planned.rate * (1 - lost) for planned, lost in system.trials)
    assert result.status in ("measured", "lower-bound")
    assert result.low_hz <= 1.001 * processed
    assert result.high_hz is None or result.high_hz >= min(capacity, 1e8)


def test_the_limit_is_that_of_a_trial_above_the_rate():
    """An overloaded trial of a cold system below the rate does not name the limit."""
    result = run_search(LossySystem(lambda number, rate: 0.3 if number == 0 else max(0.0, 1 - 20_000 / rate)))
    assert (result.status, result.limited_by) == ("measured", None)
