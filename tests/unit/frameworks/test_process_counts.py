"""Frameworks of plain processes have one at least."""

import pytest

from bench.errors import UsageError
from bench.plugins import registry


@pytest.mark.parametrize(
    ("framework", "setting"),
    [("bytewax", "processes"), ("python", "processes"), ("harmonicio", "pes"), ("harmonicio", "bridges")],
)
@pytest.mark.parametrize("number", [-1, 0], ids=["negative", "none"])
def test_a_number_of_processes_below_one_is_refused(framework: str, setting: str, number: int) -> None:
    """Before anything starts; the line names the setting and the least number."""
    with pytest.raises(UsageError, match=rf"settings\.{framework}\.{setting}.*at least 1"):
        registry.make_framework(framework, {framework: {setting: number}})
