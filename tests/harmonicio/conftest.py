"""Fixtures of HarmonicIO's tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `standing`, and for what the PEs run

from standing import Stand


@pytest.fixture
def stand(tmp_path):
    """Nothing runs yet; whatever does is stopped afterwards."""
    stand = Stand(tmp_path)
    yield stand
    for role in ("worker", "master"):
        if role in stand.processes:
            stand.stop(role)


@pytest.fixture
def standing(stand):
    """A master and a worker."""
    stand.start_master()
    stand.start_worker()
    return stand
