"""The resource usage of a site's hosts is read before and after a window."""

from concurrent.futures import wait

import pytest
from exporter import Exporter
from msgspec.structs import replace

from bench.config.site import HostSite, Site
from bench.telemetry.node_exporter import HostMetrics, parse_samples
from bench.telemetry.site_hosts import HostCounters, HostMeter, host_counters, usage_between

SERVED = """\
node_time_seconds 5
node_cpu_seconds_total{cpu="0",mode="steal"} 2
node_cpu_seconds_total{cpu="0",mode="user"} 30
node_cpu_seconds_total{cpu="0",mode="system"} 10
node_cpu_seconds_total{cpu="0",mode="idle"} 400
node_cpu_seconds_total{cpu="0",mode="iowait"} 3
node_network_receive_bytes_total{device="lo"} 7e9
node_network_receive_bytes_total{device="eth0"} 100
node_network_receive_bytes_total{device="eth1"} 20
node_disk_written_bytes_total{device="sda"} 50
node_disk_written_bytes_total{device="dm-0"} 50
node_memory_MemTotal_bytes 1000
node_memory_MemAvailable_bytes 300
"""


def counters(text: str) -> HostCounters | None:
    """Return the counters that an exporter's text has."""
    return host_counters(HostMetrics(parse_samples(text), None, 0.0))


def test_stolen_time_of_each_host_is_measured(
    exporter_address: str, unused_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that does not answer is missing."""
    site = Site(hosts={"b1": HostSite(exporter_address), "b2": HostSite(unused_address)})
    meter = HostMeter(site)
    wait(meter._before.values())
    monkeypatch.setattr(Exporter, "stolen", 2.5)
    monkeypatch.setattr(Exporter, "ahead", 10.0)
    meter.stop()
    usage = meter.usage()
    assert usage.keys() == {"b1"}
    assert usage["b1"]["steal"] == 2.5
    assert usage["b1"]["available"] >= 20


@pytest.mark.parametrize("site", [Site(), Site(hosts={"b1": HostSite("127.0.0.1:1")}, shared_machine=True)])
def test_hosts_that_share_this_machine_are_not_asked(site: Site) -> None:
    """This machine's own account has their usage."""
    meter = HostMeter(site)
    meter.stop()
    assert meter.usage() == {}


def test_devices_are_summed_and_virtual_ones_left_out() -> None:
    """Bytes of the loopback cross no card, and those of a logical volume cross its disk."""
    assert counters(SERVED) == HostCounters(
        5.0, 1, steal=2.0, busy=40.0, volumes={"received_bytes": 120.0, "written_bytes": 50.0}, memory=700.0
    )


def test_an_exporter_without_its_time_or_stolen_time_says_nothing() -> None:
    """Its CPU could not be accounted for."""
    for missing in ("node_time_seconds", 'mode="steal"'):
        assert counters("\n".join(line for line in SERVED.splitlines() if missing not in line)) is None


def test_usage_is_the_difference_of_two_readings() -> None:
    """A counter that began anew counts as 0."""
    begin = HostCounters(10.0, 2, steal=1.0, busy=5.0, volumes={"sent_bytes": 100.0, "read_bytes": 9.0}, memory=1.0)
    end = HostCounters(12.0, 2, steal=1.5, busy=8.0, volumes={"sent_bytes": 400.0, "read_bytes": 4.0}, memory=2.0)
    assert usage_between(begin, end) == {
        "seconds": 2.0,
        "available": 4.0,
        "steal": 0.5,
        "busy": 3.0,
        "sent_bytes": 300.0,
        "read_bytes": 0.0,
        "memory_bytes": 2.0,
    }


def test_garbage_collection_counts_where_the_readings_cover_the_window() -> None:
    """A host reads its JVMs' counters every 15 s: in 60 s the pauses are known, in 15 s they are not."""
    served = SERVED + 'stream_bench_gc_seconds_total{name="kafka",pid="7"} 1.5\nstream_bench_collected_seconds 3\n'
    begin = counters(served)
    assert (begin.gc, begin.collected) == ({"kafka 7": 1.5}, 3.0)
    new = {"kafka 7": 2.5, "spark-worker 9": 0.5}
    assert usage_between(begin, replace(begin, at=65.0, collected=63.0, gc=new))["gc_seconds"] == pytest.approx(1.5)
    for end in (
        replace(begin, at=20.0, collected=18.0 - 15.0, gc=new),
        replace(begin, at=20.0, collected=12.0, gc=new),
        replace(begin, at=65.0, collected=63.0, gc={}),
        replace(begin, at=65.0, collected=63.0, gc={"spark-worker 9": 0.5}),  # the other one ended
    ):
        assert "gc_seconds" not in usage_between(begin, end)
