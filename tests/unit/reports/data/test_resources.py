"""The resource usage of a cell by role."""

from sample_runs import make_measurement

from bench.analysis.verdict import Verdict
from reports.data.resources import HEADINGS, describe_resources
from reports.data.run_data import JudgedTrial


def table(**more):
    """Return the resource table of a trial, by role and heading."""
    judged = JudgedTrial(make_measurement(1, 100.0, 200.0, **more), Verdict("sustained"))
    return {row[0]: dict(zip(HEADINGS, row, strict=True)) for row in describe_resources(judged)}


def test_each_role_has_its_share_of_the_window():
    """CPU is in cores, volumes are in bytes/s, garbage collection is a percentage of the time."""
    used = {
        "source": {
            "sent_bytes": 1e7,
            "received_bytes": 2e7,
            "read_bytes": 0.0,
            "written_bytes": 3e7,
            "gc_seconds": 0.05,
        }
    }
    row = table(cpu={"seconds": 10.0, "source": 5.0, "busy": 9.0}, usage=used)["source’s servers"]
    assert [row[name] for name in HEADINGS[1:]] == ["0.50", "800 MB", "1 MB/s", "2 MB/s", "0 B/s", "3 MB/s", "0.5 %"]


def test_an_unknown_value_is_a_dash_and_not_zero():
    """A framework without a JVM has no garbage collection, and a kernel may have no socket counters."""
    row = table(usage={"framework": {"read_bytes": 0.0, "written_bytes": 0.0}})["framework"]
    assert (row["Sent"], row["GC"], row["Disk read"]) == ("–", "–", "0 B/s")


def test_hosts_of_a_site_have_rows_of_their_own():
    """They come after the roles; what their exporter does not serve is a dash."""
    used = {"seconds": 10.0, "available": 40.0, "busy": 25.0, "steal": 0.0, "sent_bytes": 5e7, "memory_bytes": 2e9}
    rows = table(hosts={"b-2": used, "b-1": {"steal": 0.0, "available": 20.0}})
    assert list(rows)[-1] == "host b-2"
    assert "host b-1" not in rows
    shown = [rows["host b-2"][name] for name in HEADINGS[1:]]
    assert shown == ["2.50", "2 GB", "5 MB/s", "–", "–", "–", "–"]


def test_without_cpu_measurements_there_is_no_table():
    """A run on several hosts may have no CPU measurements."""
    assert (
        describe_resources(None)
        == describe_resources(JudgedTrial(make_measurement(1, 100.0, 200.0, cpu={}), Verdict("sustained")))
        == ()
    )
