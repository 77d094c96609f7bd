"""Compare how fast Spark reads full topics of Kafka and Pulsar; print a table, or the figures as JSON.

python -m frameworks.spark.benchmark --size 10kB --size 10MB --turns 2

Topics of Kafka and Pulsar are filled first. Then Spark reads them, and a source without a broker, with the same Python
stage and the same settings, in turns; beside it the brokers' own clients read them.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from itertools import count as numbers
from pathlib import Path

import msgspec

from bench.config.site import Site
from bench.errors import HarnessError
from bench.plugins.environment import RunEnvironment
from bench.system.supervisor import Supervisor
from bench.units import Size, size_text
from frameworks.full_topic import PARTS, fill_topic, parse_size
from frameworks.spark.adapter import SparkSettings
from frameworks.spark.benchmark.reading import ReaderRate, Turn, by_client, by_spark, reader_options

SOURCES = ("kafka", "pulsar", "memory")
BAR = 0.8
MAX_MESSAGES = 2_000_000
CACHE = Path.home() / ".cache" / "stream-bench"


def main() -> None:
    """Measure what the command line asks for."""
    arguments = _parse_arguments()
    with tempfile.TemporaryDirectory(prefix="spark-benchmark-", dir=arguments.data) as name:
        folder = Path(name)
        with RunEnvironment(
            Site(),
            Supervisor(folder / "running", folder / "logs"),
            folder / "data",
            CACHE,
            cores=arguments.cores,
            note=_say,
        ) as env:
            try:
                for size in map(int, arguments.size):
                    found = take_readings(
                        size, max(PARTS, min(MAX_MESSAGES, arguments.bytes // size) // PARTS * PARTS), arguments, env
                    )
                    sys.stdout.write(_json(found) if arguments.json else table(found))
            except HarnessError as problem:
                sys.exit(f"error: {problem}")


def take_readings(size: int, count: int, arguments: argparse.Namespace, env: RunEnvironment) -> list[ReaderRate]:
    """Return every reader's readings of `count` messages."""
    conf = dict(one.split("=", 1) for one in arguments.conf)
    turns: dict[tuple[str, str], list[Turn]] = {}
    number = numbers()
    with ExitStack() as stack:
        endpoints = {}
        for source in arguments.source:
            _say(f"{size_text(size)}: filling {source} with {count} messages")
            endpoints[source] = stack.enter_context(fill_topic(source, size, count, env, {}))
        for turn in range(arguments.turns + 1):
            for source in (
                arguments.source[turn % len(arguments.source) :] + arguments.source[: turn % len(arguments.source)]
            ):
                _say(
                    f"{size_text(size)}: spark/{source}, "
                    + (f"turn {turn} of {arguments.turns}" if turn else "to warm up")
                )
                options = reader_options(endpoints[source], size, count, next(number))
                one = by_spark(endpoints[source], size, count, env, SparkSettings(options=options, conf=conf))
                turns.setdefault((source, "spark"), []).extend(
                    [one] if turn else []
                )  # at first half of the time goes to the JIT
        for source in arguments.source:
            if source != "memory" and not arguments.no_clients:
                _say(f"{size_text(size)}: {source}'s client")
                turns[source, "client"] = [by_client(endpoints[source], size, count, env)]
    return [
        ReaderRate(
            source, size, by, [t.hz for t in measured], measured[-1].core_seconds, all(t.exact for t in measured)
        )
        for (source, by), measured in turns.items()
    ]


def table(found: list[ReaderRate]) -> str:
    """Return the table that a user reads."""
    cost = "ms of a core a message: reader, broker"
    lines = [f"{'size':>8}  {'reader':<14}{'messages/s':>12}  {'MB/s':>6}  {cost:<40}exact"]
    for row in found:
        reader = row.core_seconds["framework"] or row.core_seconds["harness"]
        cost = f"{reader * 1000:.3g}, {row.core_seconds['source'] * 1000:.3g}"
        hz, name = row.median_hz, f"{row.by}/{row.source}"
        lines.append(
            f"{size_text(row.message_bytes):>8}  {name:<14}{hz:>12,.0f}  {hz * row.message_bytes / 1e6:>6,.0f}"
            f"  {cost:<40}{'yes' if row.exact else 'NO'}   {', '.join(f'{one:.0f}' for one in row.hz)}"
        )
    return "\n".join([*lines, *_ratios(found), ""])


def _ratios(found: list[ReaderRate]) -> list[str]:
    hz = {row.source: row.median_hz for row in found if row.by == "spark"}
    lines = []
    if {"kafka", "pulsar"} <= hz.keys():
        ratio = hz["pulsar"] / hz["kafka"]
        lines.append(f"spark/pulsar is {ratio:.2f} of spark/kafka (bar {BAR}: {'met' if ratio >= BAR else 'MISSED'})")
    if {"memory", "pulsar"} <= hz.keys():
        lines.append(f"spark/pulsar is {hz['pulsar'] / hz['memory']:.2f} of a Python data source without a broker")
    return lines


def _json(found: list[ReaderRate]) -> str:
    return msgspec.json.encode(found).decode() + "\n"


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m frameworks.spark.benchmark", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--size", type=parse_size, action="append", help="of messages; repeatable (10kB 1MB 10MB)")
    parser.add_argument(
        "--source", choices=SOURCES, action="append", help="kafka, pulsar or memory; may be repeated (all)"
    )
    parser.add_argument("--turns", type=int, default=3, help="that count; one to warm up comes first (3)")
    parser.add_argument("--bytes", type=parse_size, default=parse_size("1GB"), help="in each topic (1GB)")
    parser.add_argument("--cores", type=int, default=2, help="tasks at once")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a Spark setting; may be repeated"
    )
    parser.add_argument("--data", type=Path, help="a folder for the brokers' data (the system's for temporary files)")
    parser.add_argument("--no-clients", action="store_true", help="leave the brokers' own clients out")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.size = arguments.size or [Size(10_000), Size(10**6), Size(10**7)]
    arguments.source = arguments.source or list(SOURCES)
    return arguments


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main()
