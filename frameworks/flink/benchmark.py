"""Flink's reading of a full topic, and Bytewax's, beside that of a plain loop; without a load generator.

python -m frameworks.flink.benchmark --size 100B --size 10kB --turns 2 --bytewax

A topic is filled first. Flink, Bytewax and the loop read it in turns with the same function on each message. Bytewax
and the loop have a process for each partition. A rate is that of the messages between the first and the last tenth:
processes that start are in neither.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.config.site import Site
from bench.errors import HarnessError, NotReadyError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint
from bench.services.python_environments import interpreter
from bench.system.ipc import Failure
from bench.system.supervisor import Supervisor
from bench.units import Size, size_text
from bench.workload.delivery_counts import DeliveryCounts, ProcessingReport
from bench.workload.processing import MessageProcessor
from frameworks.flink.commands import Mode
from frameworks.flink.conf import FlinkSettings, max_messages
from frameworks.flink.plain_loop import ReadPartition
from frameworks.full_topic import ENTROPY, PARTS, fill_topic, parse_size

LOOP, BYTEWAX = "plain loop", "bytewax"
SEEN_RATIOS = {
    ("flink table", 100): 0.43,
    ("flink table", 10_000): 0.11,
    ("flink table", 10**6): 0.18,
    ("flink datastream", 100): 0.09,
    ("flink datastream", 10_000): 0.15,
    ("flink datastream", 10**6): 0.21,
    (BYTEWAX, 100): 0.26,
    (BYTEWAX, 10_000): 0.64,
    (BYTEWAX, 10**6): 1.05,
}
"""By reader and message size: its rate as a share of the loop's, when this was tried on two cores."""
SHORT = 0.9
"""Below this share of a ratio that was seen, it is not reached again."""
MAX_MESSAGES = 4_000_000
CACHE = Path.home() / ".cache" / "stream-bench"
_READ_TIMEOUT_S = 180.0
_SHARES = (0.1, 0.9)
Poll = Callable[[], list[ProcessingReport]]


class LoopRate(Struct, frozen=True):
    """The rates of a reader at a message size."""

    reader: str
    message_bytes: int
    hz: list[float]
    """messages/s of each turn"""
    exact: bool
    """whether each turn got every message once"""


def main() -> None:
    """Measure what the command line asks for."""
    arguments = _parse_arguments()
    readers = [*(f"flink {mode}" for mode in arguments.mode), *([BYTEWAX] if arguments.bytewax else []), LOOP]
    with tempfile.TemporaryDirectory(prefix="flink-benchmark-", dir=arguments.data) as name:
        folder = Path(name)
        supervisor = Supervisor(folder / "running", folder / "logs")
        with RunEnvironment(Site(), supervisor, folder / "data", CACHE, cores=PARTS, note=_say) as env:
            try:
                _require_installed(readers)
                for size in map(int, arguments.size):
                    count = max(PARTS, min(MAX_MESSAGES, int(arguments.bytes) // size))
                    found = take_readings(size, count, readers, arguments.turns, env)
                    sys.stdout.write(msgspec.json.encode(found).decode() + "\n" if arguments.json else table(found))
            except HarnessError as problem:
                sys.exit(f"error: {problem}")


def _require_installed(readers: list[str]) -> None:
    """Raise UsageError if the Python environment of a reader is missing, before a topic is filled for it."""
    for name in {reader.partition(" ")[0] for reader in readers if reader != LOOP}:
        environment = registry.framework_plugin(name).environment
        if environment is not None:
            interpreter(environment, CACHE)


def take_readings(size: int, count: int, readers: list[str], turns: int, env: RunEnvironment) -> list[LoopRate]:
    """Return every reader's readings of `count` messages; a turn to warm up comes first."""
    rates: dict[str, list[tuple[float, bool]]] = {reader: [] for reader in readers}
    _say(f"{size_text(size)}: filling a topic with {count} messages")
    with fill_topic("kafka", size, count, env, {}) as endpoint:
        for turn in range(turns + 1):
            for reader in readers:
                _say(f"{size_text(size)}: {reader}, " + (f"turn {turn} of {turns}" if turn else "to warm up"))
                with _open(reader, endpoint, size, env) as poll:
                    rates[reader].append(_rate(poll, count))
    return [
        LoopRate(reader, size, [hz for hz, _ in seen[1:]], all(exact for _, exact in seen))
        for reader, seen in rates.items()
    ]


def table(found: list[LoopRate]) -> str:
    """Return the table that a user reads."""
    loop = next(median(row.hz) for row in found if row.reader == LOOP)
    lines = []
    for row in found:
        hz, exact = median(row.hz), "exact" if row.exact else "NOT EXACT"
        lines.append(
            f"{size_text(row.message_bytes):>8}  {row.reader:<16}{hz:>12,.0f} messages/s"
            f"  {hz / loop:.3f} of the loop  {_beside_seen(row, hz / loop):<22}{exact}\n"
        )
    return "".join(lines)


def _beside_seen(row: LoopRate, ratio: float) -> str:
    seen = SEEN_RATIOS.get((row.reader, row.message_bytes))
    if seen is None or not row.exact:
        return ""
    return f"(seen {seen:.2f}: {'reached' if ratio >= SHORT * seen else 'BELOW'})"


@contextmanager
def _open(reader: str, endpoint: Endpoint, size: int, env: RunEnvironment) -> Iterator[Poll]:
    """Yield the `poll` of a reader that reads the endpoint from its beginning."""
    name, _, mode = reader.partition(" ")
    cell, work = Cell(name, "kafka", size, 0.0), MessageProcessor(size, ENTROPY)
    if reader != LOOP:
        settings = {"mode": mode} if mode else {"processes": endpoint.parts}
        with closing(registry.make_framework(name, {name: settings}).open(cell, endpoint, work, env)) as job:
            yield job.poll
        return
    with ExitStack() as opened:
        children = []
        for part in range(endpoint.parts):
            command = [sys.executable, "-m", "frameworks.flink.plain_loop"]
            received = ProcessingReport | Failure
            child = env.supervisor.start(command, name=f"loop-{part}", role="framework", received=received)
            opened.callback(child.stop)
            most = max_messages(FlinkSettings(), cell)
            read = ReadPartition(endpoint.address, endpoint.name, part, most, replace(work, results_together=True))
            child.inbox.send(read)
            children.append(child)
        yield lambda: [report for child in children for report in child.receive()]


def _rate(poll: Poll, count: int) -> tuple[float, bool]:
    """Return (messages/s in the middle of a reading, whether every message came once)."""
    reports, counts, deadline = list[ProcessingReport](), DeliveryCounts(), time.monotonic() + _READ_TIMEOUT_S
    while counts.count + counts.corrupted < count:
        if time.monotonic() > deadline:
            raise NotReadyError(f"{counts.count} of {count} messages were read within {_READ_TIMEOUT_S:g} s")
        for report in poll():
            reports.append(report)
            counts.add(report)
        time.sleep(0.01)
    first, last = (_when(reports, share * count) for share in _SHARES)
    return (last[1] - first[1]) / (last[0] - first[0]), counts.reconcile({0: count}) == (0, 0)


def _when(reports: list[ProcessingReport], count: float) -> tuple[float, int]:
    """Return (CLOCK_MONOTONIC seconds, messages) of the report with which so many messages were processed."""
    done = 0
    for report in sorted(reports, key=lambda one: one.at):
        done += report.count
        if done >= count:
            break
    return report.at, done


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m frameworks.flink.benchmark", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--size", type=parse_size, action="append", help="of messages; repeatable (100B 10kB 1MB)")
    parser.add_argument("--mode", choices=get_args(Mode), action="append", help="of Flink; may be repeated (both)")
    parser.add_argument("--bytewax", action="store_true", help="read with Bytewax, too (bench install bytewax)")
    parser.add_argument("--turns", type=int, default=3, help="that count; one to warm up comes first (3)")
    parser.add_argument("--bytes", type=parse_size, default=Size(10**9), help="in the topic (1GB)")
    parser.add_argument("--data", type=Path, help="a folder for the broker's data (the system's for temporary files)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.size = arguments.size or [Size(100), Size(10_000), Size(10**6)]
    arguments.mode = arguments.mode or list(get_args(Mode))
    return arguments


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main()
