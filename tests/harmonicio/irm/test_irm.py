"""The resource manager gives the known answers of the reference."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packing_variants import first_fit_by_tree, pack, vector_first_fit

from frameworks.harmonicio.engine.errors import ConfigError, RefusedError
from frameworks.harmonicio.engine.irm.autoscaler import WorkerPool, scale, target_workers
from frameworks.harmonicio.engine.irm.packing import Packing, idle_buffer
from frameworks.harmonicio.engine.irm.parameters import PAPER, SHIPPED
from frameworks.harmonicio.engine.irm.predictor import Predictor, growth, pes_to_add
from frameworks.harmonicio.engine.irm.profiler import Profiler, weighted_mean
from frameworks.harmonicio.engine.irm.requests import RequestQueue

STRICT = [
    ([0.5, 0.7, 0.5, 0.2, 0.4, 0.2, 0.5, 0.1, 0.6], [[0.5, 0.2, 0.2], [0.7, 0.1], [0.5, 0.4], [0.5], [0.6]]),
    ([0.5, 0.5, 0.5], [[0.5], [0.5], [0.5]]),
    ([0.125] * 9, [[0.125] * 7, [0.125] * 2]),
    ([0.3, 0.6, 0.2, 0.8, 0.1, 0.5], [[0.3, 0.6], [0.2, 0.1, 0.5], [0.8]]),
]
LEQ = [
    ([0.5, 0.7, 0.5, 0.2, 0.4, 0.2, 0.5, 0.1, 0.6], [[0.5, 0.5], [0.7, 0.2, 0.1], [0.4, 0.2], [0.5], [0.6]]),
    ([0.5, 0.5, 0.5], [[0.5, 0.5], [0.5]]),
    ([0.125] * 9, [[0.125] * 8, [0.125]]),
    ([1.0], [[1.0]]),
    ([0.3, 0.6, 0.2, 0.8, 0.1, 0.5], [[0.3, 0.6, 0.1], [0.2, 0.8], [0.5]]),
]
SIZES = st.lists(st.floats(0.02, 0.99), max_size=40)
FITS = pytest.mark.parametrize("fit", ["strict", "leq"])


@pytest.mark.parametrize(("items", "bins"), STRICT)
def test_the_strict_rule_answers_as_the_original(items, bins):
    """An item fits where its size is below the free space."""
    assert pack(items, "strict") == bins


@pytest.mark.parametrize(("items", "bins"), LEQ)
def test_the_rule_with_equality_answers_as_published(items, bins):
    """An item fits where its size is at most the free space."""
    assert pack(items, "leq") == bins


@pytest.mark.parametrize(("size", "fit"), [(1.0, "strict"), (1.1, "leq"), (0.0, "leq"), (math.nan, "leq")])
def test_an_item_that_fits_no_bin_is_refused(size, fit):
    """It is not lost silently."""
    with pytest.raises(RefusedError, match="size"):
        pack([size], fit)


@FITS
@given(sizes=SIZES)
def test_every_item_is_in_one_bin_and_no_bin_is_over_full(fit, sizes):
    """This holds for all sizes."""
    bins = pack(sizes, fit)
    assert sorted(size for items in bins for size in items) == sorted(sizes)
    assert all(sum(items) <= 1 + 1e-6 for items in bins)


@FITS
@given(sizes=SIZES)
def test_the_tree_packs_as_the_scan_does(fit, sizes):
    """Both give the same bins."""
    assert first_fit_by_tree(sizes, fit) == pack(sizes, fit)


@given(sizes=SIZES)
def test_at_most_one_bin_is_half_empty(sizes):
    """This holds while nothing is removed."""
    assert sum(sum(items) < 0.5 for items in pack(sizes, "leq")) <= 1


@given(sizes=st.lists(st.floats(0.05, 0.99), min_size=1, max_size=8))
def test_first_fit_is_near_the_optimum(sizes):
    """It uses at most floor(1.7 OPT) bins, where OPT is from an exhaustive search."""
    assert len(pack(sizes, "leq")) <= math.floor(1.7 * optimum(tuple(sorted(sizes, reverse=True))))


def optimum(sizes):
    """Return the fewest bins, by trying every bin for every item."""
    best = len(sizes)

    def address(index, free):
        nonlocal best
        if len(free) >= best:
            return
        if index == len(sizes):
            best = len(free)
            return
        for position, space in enumerate(free):
            if sizes[index] <= space + 1e-9:
                address(index + 1, (*free[:position], space - sizes[index], *free[position + 1 :]))
        address(index + 1, (*free, 1 - sizes[index]))

    address(0, ())
    return best


@pytest.mark.parametrize(
    ("bins", "idle"), [(1, 1), (9, 1), (10, 2), (50, 2), (54, 2), (55, 3), (99, 3), (100, 4), (150, 5), (1000, 6)]
)
def test_the_buffer_of_idle_workers_grows_with_the_logarithm(bins, idle):
    """The values are those of the reference."""
    assert idle_buffer(bins) == idle


@pytest.mark.parametrize(
    ("rate", "length", "added"), [(6, 0, 2), (5, 0, 1), (0, 11, 2), (3, 5, 1), (-3, 20, 1), (-2, 20, 1), (0, 10, 0)]
)
def test_the_predictor_follows_its_table(rate, length, added):
    """The parameters are those of the paper."""
    assert pes_to_add(rate, length, PAPER) == added


def test_growth_is_truncated_towards_zero_and_the_first_time_is_the_whole_length():
    """This is how the original computes it."""
    assert (growth(7, None, 2), growth(4, 7, 2), growth(7, 4, 2)) == (3, -1, 1)


def test_after_pes_were_added_the_predictor_waits():
    """It waits for the scale-up waiting time."""
    predictor = Predictor(PAPER)
    assert [predictor.update(50, now) for now in (0.0, 1.0, 10.0, 10.5)] == [2, 0, 0, 2]


def test_removing_a_pe_frees_its_space_and_removes_trailing_empty_bins():
    """No other item moves."""
    packing = Packing("leq")
    assert [packing.put(key, 0.6) for key in "abc"] == [0, 1, 2]
    packing.remove("b")
    assert (len(packing.bins), packing.put("d", 0.6)) == (3, 1)
    packing.remove("c")
    packing.remove("d")
    assert len(packing.bins) == 1


def test_vectors_fit_where_every_dimension_does():
    """The margin of the fork is respected, too."""
    assert vector_first_fit([(0.5, 0.2), (0.5, 0.2), (0.1, 0.7)]) == [[0, 1], [2]]
    assert vector_first_fit([(0.5, 0.2), (0.44, 0.2), (0.46, 0.2)], "strict", 0.05) == [[0, 1], [2]]


def test_a_request_is_retried_as_often_as_its_time_to_live_says():
    """A time to live of one means two attempts."""
    queue = RequestQueue(1)
    queue.add("img")
    (first,) = queue.drain()
    assert queue.retry(first)
    (second,) = queue.drain()
    assert not queue.retry(second)
    assert queue.dropped == 1


def test_a_profile_is_a_mean_by_pes_without_workers_that_have_not_measured():
    """It never falls below the smallest size."""
    assert weighted_mean([(0.2, 1), (0.5, 2), (None, 4)]) == pytest.approx(0.4)
    profiler = Profiler(0.02)
    profiler.add_reports("img", [(0.4, 1)])
    profiler.add_reports("img", [(0.2, 1)])
    profiler.add_reports("idle", [(0.0, 1)])
    assert (profiler.size("img"), profiler.size("idle"), profiler.size("new")) == (pytest.approx(0.3), 0.02, None)


def test_the_autoscaler_enables_registered_workers_up_to_its_target():
    """It returns how many are missing."""
    provider = WorkerPool()
    provider.update(["a", "b"], set())
    assert (scale(provider, 0), provider.workers()) == (0, ["a"])
    assert (scale(provider, 3), provider.workers()) == (2, ["a", "b"])
    assert target_workers(10) == 12


def test_both_published_sets_are_valid_and_contradictions_are_refused():
    """The error names the wrong parameter."""
    assert (PAPER.default_cpu_share, SHIPPED.default_cpu_share) == (0.125, 0.5)
    with pytest.raises(ConfigError, match="slowdown_rate"):
        type(PAPER)(**{**{name: getattr(PAPER, name) for name in PAPER.__struct_fields__}, "slowdown_rate": 1})


@pytest.mark.parametrize(
    ("items", "first", "best"),
    [
        ([0.5, 0.7, 0.3, 0.5], [[0.5, 0.3], [0.7], [0.5]], [[0.5, 0.5], [0.7, 0.3]]),
        ([0.5, 0.6, 0.3, 0.4, 0.2], [[0.5, 0.3, 0.2], [0.6, 0.4]], [[0.5, 0.4], [0.6, 0.3], [0.2]]),
    ],
    ids=["Best-Fit needs fewer", "First-Fit needs fewer"],
)
def test_neither_first_fit_nor_best_fit_always_needs_fewer_bins(items, first, best):
    """Best-Fit takes the fullest bin that an item fits, First-Fit the first one."""
    assert (pack(items), pack(items, rule="best-fit")) == (first, best)


@pytest.mark.parametrize(("items", "bins"), LEQ)
def test_best_fit_packs_the_published_lists_as_first_fit_does(items, bins):
    """They do not tell the two apart."""
    assert pack(items, "leq", "best-fit") == bins
