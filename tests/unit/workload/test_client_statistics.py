"""The statistics of a client are sampled once a second."""

from bench.workload import client_statistics
from bench.workload.client_statistics import StatisticsSampler


class Counting:
    """A client with statistics."""

    def statistics(self):
        return {"round_trip_s": 0.25}


def test_a_sample_has_the_harness_clock(monkeypatch):
    """The client may be on another host, whose clock is behind by a second."""
    sampler = StatisticsSampler(Counting(), "sender 0", ahead_s=1.0)
    monkeypatch.setattr(client_statistics.time, "monotonic", lambda: 7.0)
    (sample,) = sampler.take().samples
    assert (sample.at, sample.entity, sample.metric, sample.value) == (8 * 10**9, "sender 0", "round_trip_s", 0.25)
    assert sampler.take() is None


def test_a_client_without_statistics_has_no_samples():
    """Nor one that knows nothing yet."""
    assert StatisticsSampler(object(), "sender 0").take() is None
