"""The figures of `harmonicio bench`: rates beside those of a bare socket pair, in turns, and the latency of single messages."""

import tempfile
import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from frameworks.harmonicio.engine.benchmark.bare import bare_rate, bare_singles
from frameworks.harmonicio.engine.benchmark.check import ACCOUNT, Check, mapped, messages_of, timed
from frameworks.harmonicio.engine.benchmark.system import System, system
from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.errors import ConfigError

TURNS = 3
ORIGINAL_HZ = {100: 700.0, 10_000_000: 42.0}
"""What 0.3.0 was seen to do (reference, section 11)."""
SINGLES_HZ, SINGLES_BYTES = 1000, 100
_SMALLEST, _LARGEST = 16, 100_000_000


def measured(sizes: Sequence[int], seconds: float, note: Callable[[str], None]) -> dict[str, Any]:
    """Every figure; `seconds` is how long each of the two is measured in all, for each size."""
    for size in sizes:
        if not _SMALLEST <= size <= _LARGEST:
            raise ConfigError(f"sizes are {_SMALLEST} to {_LARGEST} bytes, not {size}")
    with tempfile.TemporaryDirectory(prefix="harmonicio-bench-") as name, system(Path(name)) as stands:
        rates = []
        for size in sizes:
            note(f"{size} B: connector to PE, and a bare socket pair, in {TURNS} turns each")
            rates.append(_compared(stands, Path(name), size, seconds / TURNS))
        note(f"single messages, {SINGLES_HZ}/s")
        return {"rates": rates, "singles": _singles(stands, Path(name), seconds)}


def table(figures: dict[str, Any]) -> str:
    """The figures for a person."""
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


def _compared(stands: System, folder: Path, size: int, seconds: float) -> dict[str, Any]:
    ours, bare, exact = [], [], True
    account = folder / f"account-{size}"
    account.write_bytes(bytes(ACCOUNT.size))
    stands.run(
        "rate", "python:frameworks.harmonicio.engine.benchmark.check:Sink", {"size": size, "account": str(account)}
    )
    with Connector(c_name="rate", port=stands.data_port, overflow="never") as connector:
        connector.send_many(messages_of(size)[:2])  # what is slow the first time is not measured
        connector.flush()
        for _ in range(TURNS):
            hz, same = bare_rate(size, seconds)
            bare.append(hz)
            exact &= same
            hz, same = _our_rate(connector, account, size, seconds)
            ours.append(hz)
            exact &= same
    stands.end("rate")
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


def _our_rate(connector: Connector, account: Path, size: int, seconds: float) -> tuple[float, bool]:
    messages, rounds = messages_of(size), 0
    mapping = mapped(account)
    before = ACCOUNT.unpack_from(mapping)
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        connector.send_many(messages)
        rounds += 1
    connector.flush()
    ended = time.monotonic()
    check, after = Check(size), ACCOUNT.unpack_from(mapping)
    check.count, check.total, check.wrong = after[0] - before[0], (after[1] - before[1]) % 2**64, after[2]
    return check.count / (ended - began), check.is_exact(rounds)


def _singles(stands: System, folder: Path, seconds: float) -> dict[str, Any]:
    """Quantiles of the time from due to processed, the median of several turns: one busy moment of a shared machine spoils one."""
    count = int(SINGLES_HZ * seconds / TURNS)
    account = folder / "singles"
    account.write_bytes(bytes(8 * count))
    stands.run("singles", "python:frameworks.harmonicio.engine.benchmark.check:Clock", {"account": str(account)})
    ours, bare = [], []
    with Connector(c_name="singles", port=stands.data_port, overflow="never") as connector:
        while not connector.feeder.pes:
            connector.feeder.step()
            time.sleep(0.01)
        for _ in range(TURNS):
            with bare_singles(account) as send:
                _send_when_due(send, count)
            bare.append(_quantiles(account))
            _send_when_due(connector.send, count)
            connector.flush()
            ours.append(_quantiles(account))
    stands.end("singles")
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
        send(timed(number, due, SINGLES_BYTES))


def _quantiles(account: Path) -> list[float]:
    """Milliseconds: p50, p99 and the longest."""
    seen = sorted(array("d", bytes(mapped(account)[:])))
    return [seen[min(len(seen) - 1, int(share * len(seen)))] * 1000 for share in (0.5, 0.99, 1.0)]
