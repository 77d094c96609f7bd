"""The time that hypervisors stole from a site's hosts is read before and after a window."""

import pytest
from exporter import Exporter

from bench.config.site import HostSite, Site
from bench.telemetry.host_cpu import HostCpu, HostCpuMeter, host_cpu
from bench.telemetry.node_exporter import HostMetrics, parse_samples


def test_stolen_time_of_each_host_is_measured(
    exporter_address: str, unused_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that does not answer is missing."""
    site = Site(hosts={"b1": HostSite(exporter_address), "b2": HostSite(unused_address)})
    meter = HostCpuMeter(site)
    meter.wait()
    monkeypatch.setattr(Exporter, "stolen", 2.5)
    monkeypatch.setattr(Exporter, "ahead", 10.0)
    meter.stop()
    usage = meter.usage()
    assert usage.keys() == {"b1"}
    assert usage["b1"]["steal"] == 2.5
    assert usage["b1"]["available"] >= 20


@pytest.mark.parametrize("site", [Site(), Site(hosts={"b1": HostSite("127.0.0.1:1")}, shared_machine=True)])
def test_hosts_that_share_this_machine_are_not_asked(site: Site) -> None:
    """This machine's own account has their stolen time."""
    meter = HostCpuMeter(site)
    meter.stop()
    assert meter.usage() == {}


def test_an_exporter_without_stolen_time_says_nothing() -> None:
    """Neither does one without its time."""
    complete = 'node_time_seconds 5\nnode_cpu_seconds_total{cpu="0",mode="steal"} 2'
    assert host_cpu(HostMetrics(parse_samples(complete), None, 0.0)) == HostCpu(5.0, 2.0, 1)
    for line in complete.splitlines():
        assert host_cpu(HostMetrics(parse_samples(line), None, 0.0)) is None
