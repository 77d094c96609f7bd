"""One process at a time holds a lock; the next one says that it waits, and gives up in the end."""

from pathlib import Path

import pytest

from bench.errors import ServiceError
from bench.system.file_lock import hold_lock


def test_a_lock_that_another_holds_is_waited_for_and_given_up(tmp_path: Path) -> None:
    """The error names the file; `waiting` is called once."""
    told: list[str] = []
    with (
        hold_lock(tmp_path / "a.lock", 0, lambda: told.append("first")),
        pytest.raises(ServiceError, match=r"a\.lock has been locked by another process for 0\.3 s"),
        hold_lock(tmp_path / "a.lock", 0.3, lambda: told.append("second")),
    ):
        pass
    assert told == ["second"]


def test_a_lock_that_was_released_can_be_held_again(tmp_path: Path) -> None:
    """Also after an error within the block."""
    with pytest.raises(ValueError, match="within"), hold_lock(tmp_path / "a.lock", 0, pytest.fail):
        raise ValueError("within")
    with hold_lock(tmp_path / "a.lock", 0, pytest.fail):
        pass
