"""Impossible measurements are reported with their figures, and possible ones are not."""

import pytest
from msgspec.structs import replace

from bench.analysis.sanity import failed_sanity_check
from bench.model.cell import Cell
from bench.model.measurement import Measurement, PlannedTrial
from bench.model.message_sizes import Sizes

CELL = Cell("python", "kafka", 10_000, 0.0)
GOOD = Measurement(
    planned=PlannedTrial(1, 1000.0, 1.0, 9.0, "search"), started="", ended="complete", batch_interval=0.0, seconds=10.0,
    offered=10_000, sent=10_000, failed=0, processed=10_000, lost=0, duplicated=0, out_of_order=0, corrupted=0,
    drained=True, late=0.0, blocked=0.0, cpu_requested_s=0.0, cpu_used_s=0.0,
)  # fmt: skip


def check(measurement, *, bound=None, link=None):
    return failed_sanity_check(measurement, CELL, bound_hz=bound, link=link)


def test_a_possible_measurement_passes_the_sanity_check():
    """A measurement exactly at its bounds passes, too."""
    assert check(GOOD, bound=1000, link=10e6) is None


IMPOSSIBLE = {
    "more received than sent": (
        replace(GOOD, processed=10_001),
        {},
        "10001 different messages were processed, but 10000 were sent",
    ),
    "negative latency": (replace(GOOD, negative=3), {}, "3 of 10000 messages were done before they were sent"),
    "above theory": (GOOD, {"bound": 900.0}, "1 k/s were processed, but theory allows 900 /s"),
    "above the link": (GOOD, {"link": 1e6}, "10 MB/s, but the link carries 1 MB/s"),
}


@pytest.mark.parametrize(("measurement", "limits", "figures"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_an_impossible_measurement_is_reported_with_its_figures(measurement, limits, figures):
    """One line has both figures that contradict each other."""
    assert figures in check(measurement, **limits)


@pytest.mark.parametrize("counter", ["duplicated", "processed_again"])
def test_a_message_that_comes_twice_is_no_impossible_result(counter):
    """It is the framework's, and counted as such."""
    assert check(replace(GOOD, processed=10_001, **{counter: 1})) is None


def test_few_messages_of_mixed_sizes_are_not_checked_against_a_link():
    """A few messages may all be small; the mean of a whole table of sizes is the cell's."""
    mixed = replace(CELL, sizes=Sizes(choice=((100, 0.5), (19_900, 0.5))))
    few = replace(GOOD, processed=4000, sent=4000)
    assert failed_sanity_check(few, mixed, bound_hz=None, link=1e6) is None
    assert "the link carries 1 MB/s" in (failed_sanity_check(GOOD, mixed, bound_hz=None, link=1e6) or "")


@pytest.mark.parametrize("asked", [0.0, 0.003, 0.0041])
def test_headers_with_another_cost_than_the_cells_are_reported(asked):
    """10,000 messages of 400 ns cost 4 ms; a cost that was rounded away is caught as well."""
    cell = replace(CELL, cpu_seconds=4e-7)
    reason = failed_sanity_check(replace(GOOD, cpu_requested_s=asked), cell, bound_hz=None, link=None)
    assert "cost 0.004 s of CPU time, but their headers asked for" in (reason or "")
    right = replace(GOOD, cpu_requested_s=0.004)
    assert failed_sanity_check(right, cell, bound_hz=None, link=None) is None


def test_a_program_that_is_faster_than_its_cpu_cost_allows_does_not_spend_it():
    """The sentence says so where the program did not report what it used."""
    seen = replace(GOOD, cpu_used_s=None)
    rate = seen.processed / seen.seconds
    reason = failed_sanity_check(seen, CELL, bound_hz=rate / 2, link=None)
    assert (reason or "").endswith(": the program does not spend the CPU cost of its messages")
    assert failed_sanity_check(seen, CELL, bound_hz=rate, link=None) is None
