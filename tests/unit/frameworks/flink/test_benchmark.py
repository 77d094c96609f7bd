"""The benchmark of full topics says what is missing before it fills one."""

import pytest

from bench.errors import UsageError
from frameworks.flink import benchmark


@pytest.mark.parametrize("reader", ["flink table", benchmark.BYTEWAX])
def test_a_reader_that_is_not_installed_is_told_at_once(reader, tmp_path, monkeypatch):
    """With the command that installs it; the plain loop needs nothing."""
    monkeypatch.setattr(benchmark, "CACHE", tmp_path)
    benchmark._require_installed([benchmark.LOOP])
    with pytest.raises(UsageError, match=f"run: bench install {reader.partition(' ')[0]}"):
        benchmark._require_installed([reader, benchmark.LOOP])
