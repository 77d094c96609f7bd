"""What is compared, over which grid, under which rules: a scenario, read strictly from YAML, and the cells it names."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from bench.units import Rate, Seconds, Share, Size, seconds_text, size_text


class Cell(Struct, frozen=True):
    """One point of the grid: a system, a message size in bytes and a CPU cost per message in seconds."""

    framework: str
    source: str
    message_bytes: int
    cpu_seconds: float

    @property
    def system(self) -> str:
        """The framework and the source it reads, such as "spark/kafka"."""
        return f"{self.framework}/{self.source}"

    @property
    def name(self) -> str:
        """A name that is fit for a folder, such as "spark-kafka-10kB-20ms"."""
        point = f"{size_text(self.message_bytes)}-{seconds_text(self.cpu_seconds)}".replace(" ", "").replace("µ", "u")
        return f"{self.framework}-{self.source}-{point}"


class Grid(Struct, frozen=True, forbid_unknown_fields=True):
    """The axes: every size is measured at every cost."""

    message_size: tuple[Size, ...]
    cpu_cost: tuple[Seconds, ...] = (Seconds(0),)


class Load(Struct, frozen=True, forbid_unknown_fields=True):
    """How messages are offered."""

    by: Literal["swarm", "inline"] = "swarm"
    arrivals: Literal["constant"] = "constant"
    entropy: Share = Share(0.75)
    workers: int = 1
    seed: int = 1
    limit: Rate | None = None
    """A generator slowed on purpose, to see how its limit is told apart from the system's."""


class Search(Struct, frozen=True, forbid_unknown_fields=True):
    """How the highest sustained rate of a cell is looked for."""

    strategy: str = "bisection"
    precision: Share = Share(0.05)
    budget: Seconds = Seconds(600)
    lowest: Rate = Rate(0.1)
    highest: Rate = Rate(1e6)
    start: Rate | None = None


class Timing(Struct, frozen=True, forbid_unknown_fields=True):
    """How long the parts of a trial last; what is left out follows from batch interval, rate and precision."""

    settle: Seconds | None = None
    window: Seconds | None = None
    drain: Seconds = Seconds(30)


class Objectives(Struct, frozen=True, forbid_unknown_fields=True):
    """What a sustained rate must keep, besides having no growing backlog."""

    loss: int = 0
    p99: Seconds | None = None


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole scenario file."""

    name: str
    systems: tuple[str, ...]
    grid: Grid
    title: str = ""
    load: Load = Load()
    search: Search = Search()
    timing: Timing = Timing()
    objectives: Objectives = Objectives()
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By room; each room publishes the type that its part is converted to."""

    def cells(self) -> tuple[Cell, ...]:
        """Every cell, all of one system together (so that what it stands on is started once), small and cheap ones first."""
        return tuple(
            Cell(framework, source, int(size), float(cost))
            for framework, _, source in (system.partition("/") for system in self.systems)
            for cost in sorted(self.grid.cpu_cost)
            for size in sorted(self.grid.message_size)
        )
