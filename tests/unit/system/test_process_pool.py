"""Work is spread over processes: every item is answered, and what goes wrong is said."""

import math

import pytest

from bench.system.process_pool import answers


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_item_is_answered(jobs):
    """In any order."""
    assert dict(answers(math.sqrt, [1.0, 4.0, 9.0], jobs)) == {1.0: 1.0, 4.0: 2.0, 9.0: 3.0}


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_the_work_raises_is_raised(jobs):
    """And the rest is given up."""
    with pytest.raises(ValueError, match=r"domain|nonnegative"):
        list(answers(math.sqrt, [1.0, -4.0], jobs))
