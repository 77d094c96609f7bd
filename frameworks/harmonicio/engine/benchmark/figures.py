"""The figures of `harmonicio bench`: rates beside those of the baseline, in turns, and latencies of single messages."""

import tempfile
import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from frameworks.harmonicio.engine.benchmark.local_cluster import BenchmarkCluster, run_cluster
from frameworks.harmonicio.engine.benchmark.payload import (
    TOTALS,
    PayloadCheck,
    make_messages,
    make_timed_message,
    map_file,
)
from frameworks.harmonicio.engine.benchmark.socket_baseline import baseline_singles, measure_baseline_rate
from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.errors import ConfigError

TURNS = 3
ORIGINAL_HZ = {100: 700.0, 10_000_000: 42.0}
"""Rates measured with 0.3.0, by message size (reference, section 11)."""
SINGLES_HZ, SINGLES_BYTES = 1000, 100
_MIN_BYTES, _MAX_BYTES = 16, 100_000_000


def run_benchmark(sizes: Sequence[int], seconds: float, note: Callable[[str], None]) -> dict[str, Any]:
    """Return all figures.

    Args:
        sizes: message sizes in bytes.
        seconds: duration of HarmonicIO and of the baseline, each, for each size.
        note: called with the progress.

    Raises:
        ConfigError: a size is out of range.
    """
    for size in sizes:
        if not _MIN_BYTES <= size <= _MAX_BYTES:
            raise ConfigError(f"sizes are {_MIN_BYTES} to {_MAX_BYTES} bytes, not {size}")
    with tempfile.TemporaryDirectory(prefix="harmonicio-bench-") as name, run_cluster(Path(name)) as cluster:
        rates = []
        for size in sizes:
            note(f"{size} B: connector to PE, and the baseline, in {TURNS} turns each")
            rates.append(_compare(cluster, Path(name), size, seconds / TURNS))
        note(f"single messages, {SINGLES_HZ}/s")
        return {"rates": rates, "singles": _measure_singles(cluster, Path(name), seconds)}


def format_table(figures: dict[str, Any]) -> str:
    """Return the figures as a table."""
    lines = [f"{'size':>10}  {'HarmonicIO':>14}  {'bare':>14}  {'ratio':>6}  {'MB/s':>6}  exact  of 0.3.0"]
    for row in figures["rates"]:
        original = f"{row['of_original']:.0f}x" if row["of_original"] else ""
        lines.append(
            f"{row['bytes']:>8} B  {row['hz']:>12,.0f}/s  {row['bare_hz']:>12,.0f}/s  {row['ratio']:>6.2f}"
            f"  {row['hz'] * row['bytes'] / 1e6:>6,.0f}  {'yes' if row['exact'] else 'NO':<5}  {original}"
        )
    singles = figures["singles"]
    lines.append(
        f"single messages of {singles['bytes']} B, {singles['hz']}/s, due to processed, median of {TURNS} turns:"
    )
    for who, key in (("HarmonicIO", ""), ("bare", "bare_")):
        p50, p99, most = (singles[f"{key}{name}_ms"] for name in ("p50", "p99", "max"))
        lines.append(f"{who:>12}  p50 {p50:.2f} ms, p99 {p99:.2f} ms; longest of all {most:.2f} ms")
    return "\n".join(lines)


def _compare(cluster: BenchmarkCluster, folder: Path, size: int, seconds: float) -> dict[str, Any]:
    ours, bare, exact = [], [], True
    record = folder / f"totals-{size}"
    record.write_bytes(bytes(TOTALS.size))
    cluster.run(
        "rate", "python:frameworks.harmonicio.engine.benchmark.payload:Sink", {"size": size, "record": str(record)}
    )
    with Connector(c_name="rate", port=cluster.data_port, overflow="never") as connector:
        connector.send_many(make_messages(size)[:2])  # warm up
        connector.flush()
        for _ in range(TURNS):
            hz, same = measure_baseline_rate(size, seconds)
            bare.append(hz)
            exact &= same
            hz, same = _measure_our_rate(connector, record, size, seconds)
            ours.append(hz)
            exact &= same
    cluster.end("rate")
    ratio = median(one / other for one, other in zip(ours, bare, strict=True))
    original = ORIGINAL_HZ.get(size)
    return {
        "bytes": size,
        "hz": median(ours),
        "bare_hz": median(bare),
        "ratio": ratio,
        "exact": exact,
        "of_original": median(ours) / original if original else None,
    }


def _measure_our_rate(connector: Connector, record: Path, size: int, seconds: float) -> tuple[float, bool]:
    messages, rounds = make_messages(size), 0
    mapping = map_file(record)
    before = TOTALS.unpack_from(mapping)
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        connector.send_many(messages)
        rounds += 1
    connector.flush()
    ended = time.monotonic()
    check, after = PayloadCheck(size), TOTALS.unpack_from(mapping)
    check.count, check.total, check.corrupted = after[0] - before[0], (after[1] - before[1]) % 2**64, after[2]
    return check.count / (ended - began), check.is_exact(rounds)


def _measure_singles(cluster: BenchmarkCluster, folder: Path, seconds: float) -> dict[str, Any]:
    """Return quantiles of the time from due to processed, the median of several turns.

    One busy moment of a shared machine spoils only one turn.
    """
    count = int(SINGLES_HZ * seconds / TURNS)
    record = folder / "singles"
    record.write_bytes(bytes(8 * count))
    image = "python:frameworks.harmonicio.engine.benchmark.payload:LatencyRecorder"
    cluster.run("singles", image, {"record": str(record)})
    ours, bare = [], []
    with Connector(c_name="singles", port=cluster.data_port, overflow="never") as connector:
        while not connector.feeder.pes:
            connector.feeder.step()
            time.sleep(0.01)
        for _ in range(TURNS):
            with baseline_singles(record) as send:
                _send_when_due(send, count)
            bare.append(_quantiles(record))
            _send_when_due(connector.send, count)
            connector.flush()
            ours.append(_quantiles(record))
    cluster.end("singles")
    at, bare_at = ([median(column) for column in zip(*turns, strict=True)] for turns in (ours, bare))
    return {
        "hz": SINGLES_HZ,
        "bytes": SINGLES_BYTES,
        "count": count * TURNS,
        "p50_ms": at[0],
        "p99_ms": at[1],
        "max_ms": max(turn[2] for turn in ours),
        "bare_p50_ms": bare_at[0],
        "bare_p99_ms": bare_at[1],
        "bare_max_ms": max(turn[2] for turn in bare),
    }


def _send_when_due(send: Callable[[bytes], object], count: int) -> None:
    begin = time.monotonic() + 0.1
    for number in range(count):
        due = begin + number / SINGLES_HZ
        time.sleep(max(0.0, due - time.monotonic()))
        send(make_timed_message(number, due, SINGLES_BYTES))


def _quantiles(record: Path) -> list[float]:
    """Return p50, p99 and the maximum in milliseconds."""
    latencies = sorted(array("d", bytes(map_file(record)[:])))
    return [latencies[min(len(latencies) - 1, int(share * len(latencies)))] * 1000 for share in (0.5, 0.99, 1.0)]
