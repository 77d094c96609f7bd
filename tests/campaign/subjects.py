"""The runs that a campaign attacks: short scenarios over real systems, each with a cell whose maximum is known."""

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from bench.cli.inputs import cache_folder
from bench.plugins.environments import environments
from bench.services.python_environments import missing_reason

Victim = Literal["harness", "load", "source", "framework", "PE", "run folder", "machine"]
"""Whom a fault hits: processes by their role, or what they stand on."""
KNOWN_SYSTEM = "capacity/memory"
"""The system whose maximum is known: it runs in the process of the harness, and no other process can end it."""
SITE = "name: campaign\n"
"""Other work may leave cells without a result; it must not make a wrong one."""


class Subject(Struct, frozen=True):
    """A scenario that is attacked."""

    name: str
    scenario: str
    """YAML"""
    victims: tuple[Victim, ...]
    """roles that have processes of their own"""
    begin_s: float
    """after which these stand, about"""
    seconds: float
    """that an undisturbed run takes, about"""
    weight: float
    """how often it is chosen, beside the others"""
    known_hz: float | None = None
    """maximum of its cells of KNOWN_SYSTEM, in messages/s; None without such a cell"""
    java: bool = False


def _beside_known(name: str, title: str, system: str, settings: str) -> str:
    """Return the scenario of a system of one worker, and of a cell whose maximum is known."""
    return f"""\
name: {name}
title: {title}
systems: [{system}, capacity/memory]
grid: {{message_size: [1 kB], cpu_cost: [10 ms]}}
search: {{strategy: two-counter, precision: 40 %, budget: 6 s}}
timing: {{settle: 200 ms, window: 1 s, drain: 5 s}}
settings:
  capacity: {{ceiling: 40 /s}}
  {settings}
"""


def _alone(name: str, title: str, settings: str) -> str:
    """Return the scenario of a framework with slow sessions, which reads Kafka; it has no other cell."""
    return f"""\
name: {name}
title: {title}
systems: [{name}/kafka]
grid: {{message_size: [1 kB], cpu_cost: [10 ms]}}
search: {{strategy: two-counter, precision: 40 %, budget: 20 s}}
timing: {{settle: 1 s, window: 4 s, drain: 10 s, warm_up: 2 s}}
settings:
  {settings}
"""


SUBJECTS = (
    Subject(
        "known",
        """\
name: known
title: Two cells whose maximum is known
systems: [capacity/memory]
grid: {message_size: [100 B, 10 kB]}
load: {by: inline}
search: {strategy: two-counter, precision: 20 %, start: 400 /s, highest: 650 /s, budget: 3 s}
timing: {settle: 100 ms}
settings:
  capacity: {ceiling: 500 /s}
""",
        ("harness",),
        begin_s=1,
        seconds=9,
        weight=12,
        known_hz=500,
    ),
    Subject(
        "kafka",
        _beside_known(
            "kafka",
            "A broker, workers, Locust, and a cell that has none of them",
            "python/kafka",
            "python: {processes: 1}",
        ),
        ("harness", "load", "source", "framework"),
        begin_s=6,
        seconds=28,
        weight=1,
        known_hz=40,
        java=True,
    ),
    Subject(
        "harmonicio",
        _beside_known(
            "harmonicio",
            "A master, a worker, PEs, Locust, and a cell that has none of them",
            "harmonicio/stream",
            "harmonicio: {pes: 1}",
        ),
        ("harness", "load", "framework", "PE"),
        begin_s=5,
        seconds=24,
        weight=1,
        known_hz=40,
    ),
    Subject(
        "spark",
        _alone(
            "spark",
            "A Spark driver, its Python workers, a broker and Locust",
            "spark: {cores: 1, batch_interval: 500 ms}",
        ),
        ("harness", "load", "source", "framework"),
        begin_s=20,
        seconds=70,
        weight=0.3,
        java=True,
    ),
    Subject(
        "pulsar",
        _beside_known(
            "pulsar",
            "Another broker, workers, Locust, and a cell that has none of them",
            "python/pulsar",
            "python: {processes: 1}",
        ),
        ("harness", "load", "source", "framework"),
        begin_s=12,
        seconds=40,
        weight=0.3,
        known_hz=40,
        java=True,
    ),
    Subject(
        "bytewax",
        _beside_known(
            "bytewax",
            "Bytewax, a broker, Locust, and a cell that has none of them",
            "bytewax/kafka",
            "bytewax: {processes: 1}",
        ),
        ("harness", "load", "source", "framework"),
        begin_s=8,
        seconds=30,
        weight=0.3,
        known_hz=40,
        java=True,
    ),
    Subject(
        "flink",
        _alone(
            "flink", "A JobManager, a TaskManager with its Python workers, a broker and Locust", "flink: {cores: 1}"
        ),
        ("harness", "load", "source", "framework"),
        begin_s=30,
        seconds=80,
        weight=0.2,
        java=True,
    ),
)


def installed(names: Collection[str]) -> list[Subject]:
    """Return the subjects with these names whose frameworks are installed here (`bench install`)."""
    found = environments()
    return [
        subject
        for subject in SUBJECTS
        if subject.name in names
        and (subject.name not in found or missing_reason(found[subject.name], cache_folder()) is None)
    ]
