"""The searches of RFC 2544 and MLRsearch satisfy the protocol of a strategy and have its statuses."""

import pytest
from msgspec.structs import replace

from bench.analysis.verdict import Verdict
from bench.search.rfc2544 import Rfc2544
from bench.simulation.capacity import Traits
from bench.simulation.cases import ADVERSARIES, SCENARIOS
from bench.simulation.driver import Case, run_search
from bench.simulation.fluid import Fluid

CALM = Case("calm", Traits(1000.0, noise=0.0, pause_gap=0.0, warm_up=0.0))


def makers():
    mlrsearch = pytest.importorskip("MLRsearch", reason="the extra mlrsearch is not installed") and __import__(
        "bench.search.mlrsearch", fromlist=["MlrSearch"]
    )
    return {"rfc2544": Rfc2544, "mlrsearch": mlrsearch.MlrSearch}


@pytest.mark.parametrize("name", ["rfc2544", "mlrsearch"])
def test_the_capacity_of_a_calm_system_is_found(name):
    """The error is below 10 %, and the budget is kept."""
    outcome = run_search(CALM, 0, makers()[name])
    assert outcome.ended
    assert outcome.result.status == "measured"
    assert abs(outcome.error) < 0.1
    assert outcome.seconds <= outcome.budget


@pytest.mark.parametrize("name", ["rfc2544", "mlrsearch"])
@pytest.mark.parametrize("index", [0, 1], ids=["calibrated", "not calibrated"])
def test_a_generators_limit_is_labelled(name, index):
    """A generator at 41 % of the capacity gives a lower bound with the reason "generator"."""
    result = run_search(ADVERSARIES[index].case, 0, makers()[name]).result
    assert (result.status, result.reason, result.high_hz) == ("lower-bound", "generator", None)


@pytest.mark.parametrize("name", ["rfc2544", "mlrsearch"])
def test_a_lowest_rate_that_fails_is_an_upper_bound(name):
    """A system that sustains nothing has no estimate."""
    slow = replace(CALM, traits=replace(CALM.traits, mean_capacity=0.1), lowest=1.0, highest=100.0)
    result = run_search(slow, 0, makers()[name]).result
    assert result.status in ("upper-bound", "failed")
    assert result.estimate_hz is None


@pytest.mark.parametrize("name", ["rfc2544", "mlrsearch"])
def test_a_small_budget_gives_a_bound_or_nothing(name):
    """The result is a bound or a failure, and the budget is kept."""
    outcome = run_search(replace(SCENARIOS[0], budget=150.0), 0, makers()[name])
    assert outcome.result.status in ("lower-bound", "upper-bound", "failed")
    assert outcome.seconds <= 150.0


@pytest.mark.parametrize("name", ["rfc2544", "mlrsearch"])
@pytest.mark.parametrize("ended", ["framework died", "source died"])
def test_a_second_death_ends_the_search(name, ended):
    """A dead source counts as a dead framework does; the reason is the note of the last death."""
    search = makers()[name](CALM.problem)
    for _ in range(2):
        planned = search.next_trial()
        assert planned is not None
        died = replace(Fluid(CALM.traits, CALM.faults, 0).run_trial(planned, 30.0), ended=ended, note="killed")
        search = search.after(died, Verdict("overloaded", ended.replace("framework ", ""), 0.1))
    result = search.result()
    assert search.next_trial() is None
    assert (result.status, result.reason, result.estimate_hz) == ("failed", "gave up: killed", None)
