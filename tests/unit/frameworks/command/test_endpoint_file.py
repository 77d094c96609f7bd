"""A program under test is told what it needs."""

import json
import stat
from pathlib import Path

import pytest

from bench.errors import UsageError
from bench.model.cell import Cell
from bench.plugins.protocols import Endpoint
from frameworks.command.endpoint_file import ReportTarget, describe, variables, write_endpoint_file

CELL = Cell("command", "kafka", 1000, 0.01)


ENDPOINT = Endpoint("kafka", "127.0.0.1:9092", "a-topic", 3, client={"user": "bench"})


RECORD = describe(CELL, ENDPOINT, ReportTarget("127.0.0.1:5000", "a-token"), 2)


def test_the_endpoint_file_is_only_its_owners(tmp_path: Path) -> None:
    """It has all that the program needs, and replaces that of the deployment before."""
    path = tmp_path / "endpoint.json"
    path.write_text("{}")
    write_endpoint_file(path, RECORD)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written = json.loads(path.read_text())
    assert (written["address"], written["topic"], written["partitions"]) == ("127.0.0.1:9092", "a-topic", 3)
    assert (written["client"], written["cpu_seconds"], written["cores"]) == ({"user": "bench"}, 0.01, 2)
    assert (written["report_address"], written["report_token"], written["report_topic"]) == (
        "127.0.0.1:5000",
        "a-token",
        "",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["endpoint.json"]


def test_a_file_that_cannot_be_written_is_the_users(tmp_path: Path) -> None:
    """The line names the setting."""
    with pytest.raises(UsageError, match=r"settings\.command\.file: .*missing"):
        write_endpoint_file(tmp_path / "missing" / "endpoint.json", RECORD)


def test_variables_have_what_is_one_value(tmp_path: Path) -> None:
    """They are texts, and the file's path is one of them."""
    found = variables(RECORD, tmp_path / "endpoint.json")
    assert found["STREAM_BENCH_ENDPOINT"] == str(tmp_path / "endpoint.json")
    assert found["STREAM_BENCH_CPU_SECONDS"] == "0.01"
    assert found["STREAM_BENCH_REPORT_TOKEN"] == "a-token"
    assert "STREAM_BENCH_CLIENT" not in found
