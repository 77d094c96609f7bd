"""Measured neighbours give hints of a cell's capacity, and the order of the cells gives most cells two neighbours."""

import pytest
from msgspec.structs import replace

from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.search.posterior import SIGMAS
from bench.search.priors import cell_order, fixed_share_of, hint_of, noise_of, warm_ups_of


def cell(size, cost=0.0, system="spark/kafka"):
    return Cell(*system.split("/"), size, cost)


def result(size, rate, cost=0.0, status="measured", reason=None, system="spark/kafka"):
    return Result(system, *system.split("/"), size, cost, status, reason, estimate_hz=rate)


def test_between_two_sizes_the_rate_is_interpolated():
    """A message takes 0.1 ms of its own, and 10 ms for each MB."""
    rates = {size: 1 / (1e-4 + 1e-8 * size) for size in (100, 10_000, 1_000_000)}
    results = [result(size, rates[size]) for size in (100, 1_000_000)]
    assert hint_of(cell(10_000), results) == pytest.approx(rates[10_000])


def test_between_two_costs_the_time_is_interpolated():
    """Between 1 ms and 3 ms a message lie 2 ms."""
    results = [result(100, 1000.0, 0.0), result(100, 1000 / 3, 0.2)]
    assert hint_of(cell(100, 0.1), results, 20.0) == pytest.approx(500)


def test_a_cost_takes_its_time_on_every_core():
    """The hint adds 10 ms on two cores, of which others need a fifth, to half a millisecond of everything else."""
    assert hint_of(cell(100, 0.01), [result(100, 2000.0)], 200.0) == pytest.approx(1 / (1 / 2000 + 1 / 160))


def test_other_costly_cells_show_the_share_of_the_cores_that_is_left():
    """A cell of 10 ms reached half of its bound, so another one is expected to reach half of its own."""
    results = [result(100, 1e6), result(10_000, 1e6), result(10_000, 100.0, 0.01)]
    assert hint_of(cell(100, 0.01), results, 200.0) == pytest.approx(100, rel=0.01)


def test_other_cells_of_a_system_show_the_fixed_cost_of_its_batches():
    """A rate that grows from 60 to 100 if batches may grow shows a fixed share of 40 %."""
    known = replace(result(100, 60.0), growing_hz=100.0)
    other = replace(result(100, 50.0, system="spark/tcp"), growing_hz=500.0)
    assert fixed_share_of(cell(10_000), [known, other, result(1000, 5.0)]) == pytest.approx(0.4)
    assert fixed_share_of(cell(100), [known]) is None
    starved = replace(result(10_000, 100.0), growing_hz=100.0)
    assert fixed_share_of(cell(100), [starved]) is None


def mean_noise(probabilities):
    return sum(share * sigma for share, sigma in zip(probabilities, SIGMAS, strict=True))


def test_other_cells_show_the_noise_that_is_usual():
    """Calm ones of the system say more than noisy ones of another; a noise that none showed stays possible."""
    calm, noisy = (1.0, 0.9, 0.5, 0.1, 0.0, 0.0), (0.0, 0.0, 0.1, 0.4, 1.0, 0.6)
    calm_cells = [replace(result(size, 100.0), noise=calm) for size in (1, 2, 3, 4)]
    noisy_cells = [replace(result(size, 100.0, system="python/kafka"), noise=noisy) for size in (1, 2, 3, 4)]
    assert mean_noise(noise_of(cell(5), calm_cells)) < 0.1
    assert mean_noise(noise_of(cell(5), calm_cells + noisy_cells)) < 0.15
    assert mean_noise(noise_of(cell(5, system="python/kafka"), calm_cells + noisy_cells)) > 0.2
    assert min(noise_of(cell(5), calm_cells + noisy_cells)) > 0


def test_a_cell_does_not_tell_itself_its_noise():
    """A cell without trials does not tell any noise either."""
    assert noise_of(cell(1), [replace(result(1, 100.0), noise=(1.0,) * 6), result(2, 100.0)]) == ()


def test_other_cells_of_a_system_show_its_warm_up():
    """A cell does not tell itself, and another system says nothing of it."""
    slow = (0.1, 0.1, 0.5, 1.0)
    results = [
        replace(result(1, 100.0), warm_ups=slow),
        replace(result(2, 100.0, system="python/kafka"), warm_ups=slow),
    ]
    assert warm_ups_of(cell(1), results) == ()
    assert max(warm_ups_of(cell(3), results)) == warm_ups_of(cell(3), results)[3]


def test_a_larger_message_is_at_most_as_frequent():
    """The hint for a larger message is the smaller one's rate, or what the source's bandwidth carries."""
    results = [result(100, 50_000.0)]
    assert hint_of(cell(200), results) == 50_000.0
    assert hint_of(cell(1_000_000), results) == 200.0


@pytest.mark.parametrize(
    "other",
    [
        result(100, 1000.0, system="spark/tcp"),
        result(100, 1000.0, status="lower-bound", reason="generator"),
        result(100, None, status="failed"),
    ],
    ids=["another system", "the generator's limit", "no answer"],
)
def test_some_results_give_no_hint(other):
    """Other systems, generator limits and failed cells give no hint."""
    assert hint_of(cell(1000), [other]) is None


def test_the_corners_come_first():
    """The order has every cell once, systems one after the other, and the corners of each grid first."""
    cells = [
        cell(size, cost, system) for system in ("a/x", "b/x") for cost in (0.0, 0.1, 1.0) for size in (1, 2, 3, 4, 5)
    ]
    order = cell_order(cells)
    assert sorted(order, key=cells.index) == cells
    assert [each.system for each in order] == ["a/x"] * 15 + ["b/x"] * 15
    assert {(c.message_bytes, c.cpu_seconds) for c in order[:4]} == {(1, 0.0), (5, 0.0), (1, 1.0), (5, 1.0)}


def test_a_map_of_one_row_is_ordered():
    """A map of one cell has that cell, and a row has its ends before its middle."""
    assert cell_order([cell(100)]) == (cell(100),)
    assert [c.message_bytes for c in cell_order([cell(size) for size in (1, 2, 3)])] == [1, 3, 2]
