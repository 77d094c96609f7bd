"""Samples are parsed from Prometheus' text format; a broken line does not cost the others."""

import pytest
from prometheus_client.samples import Sample

from bench.telemetry.node_exporter import HostMetrics, metrics_of, parse_samples


@pytest.mark.parametrize(
    ("line", "sample"),
    [
        ("node_time_seconds 1.5", Sample("node_time_seconds", {}, 1.5)),
        ("node_load1 2 1700000000000", Sample("node_load1", {}, 2, 1.7e9)),
        (r'node_disk{path="a\"b\\c"} 1', Sample("node_disk", {"path": 'a"b\\c'}, 1)),
        ("node_cpu_seconds_total 4.5e+06", Sample("node_cpu_seconds_total", {}, 4.5e6)),
    ],
    ids=["python", "with a timestamp", "with an escaped label", "a counter keeps its name"],
)
def test_a_sample_is_parsed(line: str, sample: Sample) -> None:
    """Name, labels, value and time are those of the line."""
    assert parse_samples(f"# TYPE {sample.name} counter\n{line}\n") == (sample,)


@pytest.mark.parametrize("line", ["not a sample", "a{", 'a{b="c} 1', 'a{b="c"}', "# TYPE a", "a NaNa", "}", "\x00 1"])
def test_a_broken_line_is_skipped(line: str) -> None:
    """The samples before and after it are parsed."""
    assert [one.name for one in parse_samples(f"first 1\n{line}\nlast 2\n")] == ["first", "last"]


def test_a_value_is_selected_by_its_labels() -> None:
    """The first sample with the name and the labels counts; without one there is no value."""
    host = HostMetrics(parse_samples('files{name="kafka"} 10\nfiles{name="spark",user="a"} 20\n'), None, 0.0)
    assert host.value("files", name="spark") == 20
    assert host.value("files", name="flink") is None


def test_the_clock_offset_is_that_of_the_quickest_reply() -> None:
    """A slow reply bounds the offset less, so that its time does not count."""
    host = metrics_of([(0.5, 100.0, "node_time_seconds 107\n"), (0.001, 200.0, "node_time_seconds 200.25\n")] * 3)
    assert (host.offset, host.bound) == (0.25, 0.001)


@pytest.mark.parametrize("text", ["node_load1 2\n", "node_time_seconds NaN\n"], ids=["missing", "not finite"])
def test_a_host_without_a_clock_has_no_offset(text: str) -> None:
    """A missing time is None, and so is one that is not finite."""
    assert metrics_of([(0.001, 200.0, text)]).offset is None
