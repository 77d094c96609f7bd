"""Work is spread over processes: every item has a result, and exceptions reach the caller."""

import math

import pytest

from bench.system.process_pool import map_unordered


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_item_has_a_result(jobs):
    """Results arrive in any order."""
    assert dict(map_unordered(math.sqrt, [1.0, 4.0, 9.0], jobs)) == {1.0: 1.0, 4.0: 2.0, 9.0: 3.0}


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_exception_of_the_work_is_raised(jobs):
    """The exception reaches the caller, and the remaining items are cancelled."""
    with pytest.raises(ValueError, match=r"domain|nonnegative"):
        list(map_unordered(math.sqrt, [1.0, -4.0], jobs))
