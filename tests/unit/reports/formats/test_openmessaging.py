"""Results that come from the OpenMessaging Benchmark, or go to it, mean the same in both tools."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UsageError
from bench.storage.run_folder import read_results, read_run
from reports.data.run_data import read_run_data
from reports.formats import html_page, openmessaging

GOOD: dict[str, Any] = {
    "workload": "1 topic / 16 partitions / 1kb", "driver": "Kafka throughput", "messageSize": 1024,
    "topics": 1, "partitions": 16,
    "publishRate": [50_000.0] * 6, "publishErrorRate": [0.0] * 6, "consumeRate": [49_990.0] * 6, "backlog": [100] * 6,
    "aggregatedEndToEndLatency50pct": 4.0, "aggregatedEndToEndLatency99pct": 12.0, "aggregatedEndToEndLatencyMax": 80.0,
}  # fmt: skip


def write_result_file(folder: Path, name: str = "result.json", **changes: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(GOOD | changes))
    return path


def test_our_cells_come_back_as_bounds(run: Path, tmp_path: Path) -> None:
    """An exported cell that is imported again has at least the rate that was sustained."""
    files = openmessaging.write(run)
    (back,) = read_results(openmessaging.read(files[:1], tmp_path, "bench import"))
    deciding = read_run_data(run).cells[0].deciding
    assert deciding is not None
    assert back.status == "lower-bound"
    assert back.low_hz == pytest.approx(deciding.measurement.planned.rate, rel=0.02)


def test_a_cell_that_catches_up_within_the_window_comes_back(run: Path, tmp_path: Path) -> None:
    """What its batches had left before it is no second subscription: the backlog is exported, too."""
    path = openmessaging.write(run)[0]
    exported = json.loads(path.read_text())
    exported["consumeRate"] = [1.2 * rate for rate in exported["publishRate"]]
    path.write_text(json.dumps(exported))
    assert len(exported["backlog"]) == len(exported["publishRate"])
    assert read_results(openmessaging.read([path], tmp_path, "bench import"))[0].status == "lower-bound"


def test_a_rate_that_consumers_followed_is_a_lower_bound(tmp_path: Path) -> None:
    """There was no search: more may be possible."""
    folder = openmessaging.read([write_result_file(tmp_path)], tmp_path / "results", "bench import result.json")
    (result,) = read_results(folder)
    assert (result.system, result.status, result.low_hz) == ("openmessaging/Kafka-throughput", "lower-bound", 50_000)
    assert read_run(folder).facts["imported"] == ["result.json"]


def test_a_rate_that_consumers_did_not_follow_is_an_upper_bound(tmp_path: Path) -> None:
    """The published rate is its upper end, and there is no estimate."""
    folder = openmessaging.read([write_result_file(tmp_path, consumeRate=[30_000.0] * 6)], tmp_path / "results", "")
    (result,) = read_results(folder)
    assert (result.status, result.estimate_hz, result.high_hz) == ("upper-bound", None, 50_000)


def test_several_subscriptions_that_lag_behind_are_an_upper_bound(tmp_path: Path) -> None:
    """They consume more than is published, and their backlog grows."""
    lagging = {"consumeRate": [60_000.0] * 6, "backlog": [400_000 * n for n in range(1, 7)]}
    folder = openmessaging.read([write_result_file(tmp_path, **lagging)], tmp_path / "results", "")
    (result,) = read_results(folder)
    assert (result.status, result.low_hz, result.high_hz) == ("upper-bound", None, 50_000)


def test_several_subscriptions_that_keep_up_are_a_lower_bound(tmp_path: Path) -> None:
    """What they consume is not added up."""
    followed = {"consumeRate": [100_000.0] * 6, "backlog": [300, 200, 500, 100, 0, 300]}
    folder = openmessaging.read([write_result_file(tmp_path, **followed)], tmp_path / "results", "")
    (result,) = read_results(folder)
    assert (result.status, result.low_hz, result.high_hz) == ("lower-bound", 50_000, None)


def test_the_cpu_cost_of_our_messages_comes_back(tmp_path: Path) -> None:
    """A rate of costly messages is not taken for one of free messages."""
    files = [write_result_file(tmp_path, f"{cost}.json", cpuSecondsPerMessage=cost) for cost in (0.0, 0.01)]
    folder = openmessaging.read(files, tmp_path / "results", "")
    assert [result.cpu_seconds for result in read_results(folder)] == [0.0, 0.01]
    assert read_run(folder).scenario.grid.cpu_cost == (0.0, 0.01)


def test_an_imported_run_has_a_report(tmp_path: Path) -> None:
    """Its latency counts from sent to received, in seconds."""
    folder = openmessaging.read([write_result_file(tmp_path)], tmp_path / "results", "")
    assert html_page.write(folder)[0].exists()
    assert read_run_data(folder).cells[0].trials[0].measurement.from_sent.p99 == 0.012


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"messageSize": 0}, "messageSize 0"),
        ({"consumeRate": [1.0]}, "publishRate has 6 values and consumeRate 1"),
        ({"publishRate": [], "consumeRate": []}, "one at least"),
        ({"publishRate": [-1.0] * 6}, "negative"),
        ({"publishRate": [0.0] * 6}, "nothing was published"),
        ({"publishRate": "fast"}, "publishRate"),
        ({"driver": None}, "driver"),
        ({"backlog": [1]}, "backlog needs a number for each"),
        ({"backlog": [], "consumeRate": [60_000.0] * 6}, "several subscriptions"),
        ({"cpuSecondsPerMessage": -1.0}, "cpuSecondsPerMessage -1.0"),
        ({"aggregatedEndToEndLatency50pct": 90.0, "aggregatedEndToEndLatency99pct": 80.0}, "contradict"),
    ],
    ids=["size", "lengths", "empty", "negative", "nothing", "type", "null", "backlog", "readers", "cost", "quantiles"],
)  # fmt: skip
def test_an_invalid_file_is_refused_in_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """The message names the file, and no run folder is created."""
    path = write_result_file(tmp_path, **changes)
    with pytest.raises(UsageError, match=message) as refused:
        openmessaging.read([path], tmp_path / "results", "")
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"\xff\xfe", b'{"a": ', b"[" * 100_000], ids=["empty", "list", "bytes", "cut", "deep"]
)
def test_another_kind_of_file_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    """The message has one line for any content."""
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"odd\.json: is no result file") as refused:
        openmessaging.read([path], tmp_path / "results", "")
    assert "\n" not in str(refused.value)


def test_an_imported_run_cannot_be_resumed(tmp_path: Path) -> None:
    """The command ends with an error of one line, since another tool measured the run."""
    folder = openmessaging.read([write_result_file(tmp_path)], tmp_path / "results", "")
    smoke = Path(__file__).parents[4] / "scenarios" / "smoke.yaml"
    command = (sys.executable, "-m", "bench", "run", str(smoke), "--resume", str(folder))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "it can be reported, but not resumed" in done.stderr


def test_the_same_cell_twice_is_refused(tmp_path: Path) -> None:
    """One result would hide the other."""
    files = [write_result_file(tmp_path, f"{n}.json") for n in range(3)]
    with pytest.raises(UsageError, match="import it by itself"):
        openmessaging.read(files, tmp_path / "results", "")


def test_less_than_a_message_is_refused(tmp_path: Path) -> None:
    """It would become a bound of 0 messages/s."""
    file = write_result_file(tmp_path, publishRate=[0.04], consumeRate=[0.04])
    with pytest.raises(UsageError, match="no whole message"):
        openmessaging.read([file], tmp_path / "results", "")
