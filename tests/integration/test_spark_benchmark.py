"""The benchmark of Spark's sources reads what it has written, all of it and once, and says whether the bar is met."""

import contextlib
import json
import sys

import pyarrow as pa
import pytest

from frameworks.spark.benchmark import __main__ as benchmark
from frameworks.spark.benchmark.__main__ import table
from frameworks.spark.benchmark.reading import ReaderRate
from frameworks.spark.pulsarsource.reading import binaries


@pytest.mark.real
def test_every_reader_gets_every_message(env, kafka, pulsar, tmp_path, monkeypatch, capsys):
    """Spark from both brokers and from memory, and both brokers' clients; on the servers of all tests."""
    options = ["--size", "1kB", "--bytes", "2MB", "--turns", "1", "--json", "--data", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["frameworks.spark.benchmark", *options])
    monkeypatch.setattr(benchmark, "RunEnvironment", lambda *_, **_options: contextlib.nullcontext(env))
    benchmark.main()
    found = json.loads(capsys.readouterr().out)
    readers = {(one["source"], one["by"]) for one in found}
    assert readers == {
        *((source, "spark") for source in ("kafka", "pulsar", "memory")),
        ("kafka", "client"),
        ("pulsar", "client"),
    }
    assert all(one["exact"] for one in found)


@pytest.mark.parametrize(("hz", "said"), [(80.0, "0.80 of spark/kafka (bar 0.8: met)"), (79.0, "(bar 0.8: MISSED)")])
def test_the_bar_is_judged(hz, said):
    """The medians decide whether the bar is met."""
    cost = {"framework": 0.1, "source": 0.1, "harness": 0.0}
    rows = [
        ReaderRate("kafka", 100, "spark", [100.0], cost, exact=True),
        ReaderRate("pulsar", 100, "spark", [1.0, hz, 900.0], cost, exact=True),
    ]
    assert said in table(rows)


@pytest.mark.parametrize("values", [[b"one"], [b"", b"two", b"\x00"], [b""]], ids=["one", "several", "empty"])
def test_binaries_are_what_arrow_would_make(values):
    """Without being built value by value."""
    found = binaries(values)
    found.validate(full=True)
    assert found.equals(pa.array(values, pa.binary()))
