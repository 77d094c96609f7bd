"""A search is made again from its inputs and the trials of its cell."""

import pytest
from msgspec.structs import replace
from sample_runs import QUICK, make_measurement

from bench.config.site import Site
from bench.model.search_inputs import SearchInputs
from bench.runner.cell_plan import plan_cell
from bench.runner.replay import recompute_result, search_problem

PLAN = plan_cell(QUICK.cells()[-5], QUICK, Site(), 2)
INPUTS = SearchInputs(2, 75.0, hint_hz=40.0, generator_hz=1e5)
VALID = [make_measurement(number, 10.0 * 4**number, 1e6) for number in range(2)]
INVALID = make_measurement(0, 10.0, 1e6, ended="load died")


def test_the_problem_has_the_inputs_of_the_search() -> None:
    """The budget is the cell's, not the scenario's."""
    problem = search_problem(PLAN, INPUTS)
    assert (problem.search.budget, problem.hint_hz, problem.generator_hz) == (75.0, 40.0, 1e5)


@pytest.mark.parametrize(("ignored", "trials"), [(0, 3), (1, 2), (3, 2)])
def test_ignored_trials_are_not_given_to_the_search(ignored: int, trials: int) -> None:
    """The first trials of the journal are left out if they are invalid."""
    inputs = replace(INPUTS, ignored=ignored)
    assert recompute_result(PLAN, inputs, [INVALID, *VALID]).trials == trials


def test_trials_after_the_limit_are_not_looked_at() -> None:
    """They came after the result; a latency trial is no trial of the search."""
    latency = make_measurement(1, 5.0, 1e6, "latency")
    given = [VALID[0], latency, VALID[1]]
    assert recompute_result(PLAN, INPUTS, given, limit=1).trials == 1
    assert recompute_result(PLAN, INPUTS, given).trials == 2


def test_a_result_of_an_impossible_trial_is_its_failure() -> None:
    """An impossible trial fails the result, as it did in the run."""
    result = recompute_result(PLAN, INPUTS, [replace(VALID[0], negative=1)])
    assert (result.status, result.trials) == ("failed", 0)
    assert result.reason is not None
    assert result.reason.startswith("trial 0: impossible: 1 of")
