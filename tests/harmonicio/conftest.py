"""Fixtures of HarmonicIO's tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `standing`, and for what the PEs run

from processes import Stand

from frameworks.harmonicio.engine.master.journal import Journal


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


@pytest.fixture
def journal(tmp_path):
    """Opens journals in one folder; all are closed afterwards."""
    opened = []

    def make(**options):
        opened.append(Journal(tmp_path / "journal", sync=False, **options))
        return opened[-1]

    yield make
    for one in opened:
        one.close()
