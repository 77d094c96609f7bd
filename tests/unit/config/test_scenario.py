"""A scenario says which of its cells are traced."""

import pytest
from msgspec.structs import replace

from bench.config.elasticity import Elasticity, LoadPart
from bench.config.scenario import Grid, Scenario
from bench.model.message_sizes import MessageSize
from bench.units import Rate, Seconds

COSTS = (0.0, 0.001, 0.002, 0.01)
SCENARIO = Scenario("x", ("python/kafka",), Grid((MessageSize(1000),), tuple(map(Seconds, COSTS))))


@pytest.mark.parametrize(
    ("trace", "traced"),
    [(None, [False, False, True, True]), (True, [True] * 4), (False, [False] * 4)],
    ids=["left out", "true", "false"],
)
def test_cells_are_traced_where_it_costs_little_unless_a_scenario_says_otherwise(trace, traced):
    """A batch of theirs takes two milliseconds at least."""
    scenario = replace(SCENARIO, trace=trace)
    assert [scenario.is_traced(cell, 0.0) for cell in scenario.cells()] == traced


def test_batches_are_not_traced_unless_a_scenario_says_so():
    """What it costs their driver is not known well enough."""
    assert not any(SCENARIO.is_traced(cell, 0.5) for cell in SCENARIO.cells())
    assert all(replace(SCENARIO, trace=True).is_traced(cell, 0.5) for cell in SCENARIO.cells())


def test_policies_are_not_traced_unless_a_scenario_says_so():
    """Their runs last for minutes, and nothing explains them."""
    scenario = replace(SCENARIO, kind="elasticity", elasticity=Elasticity((LoadPart(Seconds(10), Rate(8)),), ("ds2",)))
    assert not any(scenario.is_traced(cell, 0.0) for cell in scenario.cells())
