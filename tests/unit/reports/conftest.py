"""The run that tests of reports share."""

from pathlib import Path

import pytest
from sample_runs import make_run


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with every status and one unfinished cell; tests may write reports into it."""
    return make_run(tmp_path_factory.mktemp("results") / "quick")
