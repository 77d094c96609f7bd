"""The CPU share of a PE is what it used between two readings."""

from frameworks.harmonicio.engine.worker.cpu_shares import CpuShares


def test_a_share_needs_two_readings():
    """It is a share of all cores."""
    shares = CpuShares(cores=4, max_entries=10)
    assert [shares.update("a", seconds, now) for seconds, now in ((1.0, 0.0), (3.0, 1.0))] == [None, 0.5]


def test_old_readings_are_dropped():
    """A worker that started many PEs keeps a limited number."""
    shares = CpuShares(cores=1, max_entries=2)
    for pe in "abc":
        shares.update(pe, 0.0, 0.0)
    assert [shares.update(pe, 1.0, 1.0) for pe in "cba"] == [1.0, 1.0, None]
