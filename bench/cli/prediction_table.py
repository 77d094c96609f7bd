"""The table of `bench explain --try`: the rate before a change, the predicted and the measured rate."""

from collections.abc import Iterator

from bench.analysis.prediction import Rates, judge_prediction, rates_of
from bench.model.measurement import Result
from bench.runner.intervention import Intervention
from bench.units import rate_range_text, rate_text

_MEANINGS = {
    "held": "the prediction held",
    "did not hold": "the prediction did not hold",
    "undecided": "undecided: the intervals with and without the change overlap",
}


def plan_lines(planned: Intervention) -> Iterator[str]:
    """Yield the lines that say what is tried, before it is."""
    yield f"trying {planned.change}: {planned.setting}"
    predicted, before = planned.predicted, planned.before
    yield f"predicted: {_text(predicted)}, {_ratio(predicted, before)} of {_text(before)}"


def outcome_lines(planned: Intervention, result: Result) -> Iterator[str]:
    """Yield the table, and whether the prediction held."""
    measured = rates_of(result)
    yield f"{'maximum rate':14}{'estimate':>12}{'interval':>28}{'of before':>12}"
    yield _row("before", planned.before, planned.before)
    yield _row("predicted", planned.predicted, planned.before)
    if measured is None:
        yield f"the cell is {result.status} with {planned.setting} ({result.reason or 'no reason given'}): not decided"
        return
    yield _row("measured", measured, planned.before)
    off = measured.estimate / planned.predicted.estimate - 1
    word = judge_prediction(planned.before, planned.predicted, measured)
    yield f"{planned.setting}: {_MEANINGS[word]}; measured {off:+.1%} from predicted"


def _row(name: str, rates: Rates, before: Rates) -> str:
    interval = rate_range_text(rates.low, rates.high)
    return f"{name:14}{rate_text(rates.estimate):>12}{interval:>28}{_ratio(rates, before):>12}"


def _text(rates: Rates) -> str:
    return f"{rate_text(rates.estimate)} [{rate_range_text(rates.low, rates.high)}]"


def _ratio(rates: Rates, before: Rates) -> str:
    return f"x{rates.estimate / before.estimate:.2f}"
