"""The types of a scenario file: systems, grid, load, search, objectives and settings; and the cells of its grid."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from bench.config.elasticity import Elasticity
from bench.model.cell import Cell
from bench.model.message_codec import MIN_MESSAGE_BYTES
from bench.model.message_keys import Keys
from bench.model.message_sizes import MessageSize as AnySize
from bench.units import Rate, Seconds, Share, limits

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)"
Name = Annotated[
    str,
    Meta(pattern=_NAME, max_length=80, description="letters, digits, dots and dashes, at most 80: it names a folder"),
]
SystemName = Annotated[
    str, Meta(pattern=r"^[^/\s]+/[^/\s]+$(?!\n)", description='framework/source, such as "spark/kafka"')
]
MessageSize = Annotated[AnySize, limits(least=f"{MIN_MESSAGE_BYTES} B", most="1 GB")]
CpuCost = Annotated[Seconds, limits(most="1 h")]
_ONCE_EACH = Meta(min_length=1, max_length=1000, extra={"unique": True}, extra_json_schema={"uniqueItems": True})


class Grid(Struct, frozen=True, forbid_unknown_fields=True):
    """The axes of the map: every size is measured at every cost. A size may be a distribution, measured as a whole."""

    message_size: Annotated[tuple[MessageSize, ...], _ONCE_EACH]
    """A size, or a distribution: {lognormal: {median: 10 kB, p99: 1 MB}}, or {choice: {100 B: 90 %, 1 MB: 10 %}}"""
    cpu_cost: Annotated[tuple[CpuCost, ...], _ONCE_EACH] = (Seconds(0),)


class Bursts(Struct, frozen=True, forbid_unknown_fields=True):
    """All messages of a period in a share of it, none in the rest. A trial has whole periods; its rate is the mean."""

    period: Annotated[Seconds, limits(over="0 s")] = Seconds(1)
    share: Annotated[Share, limits(least="0.1 %")] = Share(0.2)


class Steps(Struct, frozen=True, forbid_unknown_fields=True):
    """Relative levels one after the other, repeated. A trial has all of them equally often; its rate is their mean."""

    every: Annotated[Seconds, limits(over="0 s")] = Seconds(2)
    levels: Annotated[tuple[Annotated[Share, limits(least="0.1 %")], ...], Meta(min_length=1, max_length=1000)] = (
        Share(0.25),
        Share(0.5),
        Share(1),
    )


class LoadSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The load: arrivals, content and keys of the messages, and the load generator that sends them."""

    by: str | None = None
    """The load generator; the installed default one when left out."""
    arrivals: Literal["constant", "poisson", "bursts", "steps", "trace"] = "constant"
    bursts: Bursts = Bursts()
    steps: Steps = Steps()
    trace: str | None = None
    """Path of a CSV file of times (s) and rates; only the shape counts: a trial has all of it, at its mean."""
    entropy: Share = Share(0.75)
    keys: Keys | None = None
    """Keys of messages, for sources that support them; without keys messages go to partitions in turn."""
    workers: Annotated[int, Meta(ge=1, le=256)] | None = None
    """Processes of the load generator; when left out: one, and more for a cell that one limits while cores are idle."""
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 1
    cores: Annotated[int, Meta(ge=1, le=1024)] | None = None
    """Cores reserved for the load generator, the last ones of this machine; shared by all processes if left out."""
    limit: Rate | None = None
    """Highest rate of the load generator, to test that its limit is distinguished from the system's."""

    @property
    def worker_count(self) -> int:
        """Return the number of processes with which the load generator begins."""
        return self.workers or 1


class Search(Struct, frozen=True, forbid_unknown_fields=True):
    """The search for the maximum sustainable throughput of a cell."""

    strategy: str = "two-counter"
    precision: Annotated[Share, limits(least="0.1 %", most="50 %")] = Share(0.05)
    budget: Annotated[Seconds, limits(over="0 s")] = Seconds(600)
    """Time for each visit to a cell; not used where `total` is set. A cell has a second one where other work disturbed
    it, and others where more workers of the load generator may send more"""
    total: Annotated[Seconds, limits(over="0 s")] | None = None
    """Time for the whole map, from the first cell on; it is spent where it changes what the map says."""
    lowest: Rate = Rate(0.1)
    highest: Rate = Rate(1e6)
    start: Rate | None = None


class Timing(Struct, frozen=True, forbid_unknown_fields=True):
    """Durations of the phases of a trial; a missing one follows from batch interval, rate and precision."""

    settle: Seconds | None = None
    window: Annotated[Seconds, limits(over="0 s")] | None = None
    drain: Annotated[Seconds, limits(over="0 s")] = Seconds(30)
    warm_up: Seconds | None = None
    """Seconds of load on new processes before the first measurement, of a framework that declares a warm-up, whose
    own default it replaces; not used for other frameworks."""


class Objectives(Struct, frozen=True, forbid_unknown_fields=True):
    """Objectives that a sustained rate meets, besides a backlog that does not grow."""

    loss: Annotated[int, Meta(ge=0)] = 0
    p99: Annotated[Seconds, limits(over="0 s")] | None = None
    batches: Literal["keep", "grow"] = "keep"
    """Whether micro-batches must keep the interval they were asked to keep, or may grow beyond it."""


class LatencyTrials(Struct, frozen=True, forbid_unknown_fields=True):
    """Latency trials after the search of a cell, at shares of its highest confirmed rate."""

    at: Annotated[tuple[Annotated[Share, limits(least="1 %")], ...], Meta(max_length=20)] = ()
    window: Annotated[Seconds, limits(over="0 s")] = Seconds(20)


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole scenario file."""

    name: Name
    systems: Annotated[tuple[SystemName, ...], _ONCE_EACH]
    grid: Grid
    title: str = ""
    kind: Literal["map", "elasticity"] = "map"
    """What is measured: the maximum of every cell, or how scaling policies follow a load over time (`elasticity`)"""
    elasticity: Elasticity | None = None
    """Of kind elasticity: the load, and the policies that follow it"""
    load: LoadSettings = LoadSettings()
    search: Search = Search()
    timing: Timing = Timing()
    objectives: Objectives = Objectives()
    latency: LatencyTrials = LatencyTrials()
    trace: bool | None = None
    """Whether traces of the workers are kept, which `bench explain` reads; nothing: of continuous frameworks, in
    cells with 5 ms of CPU cost or more, where they cost less than 1 %"""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By plugin; each plugin publishes the type of its settings."""

    def cells(self) -> tuple[Cell, ...]:
        """Return every cell: by system, so that services start once, then by CPU cost and size, ascending."""
        return tuple(
            Cell(framework, source, int(size), float(cost), getattr(size, "sizes", None))  # a plain Size has one
            for framework, _, source in (system.partition("/") for system in self.systems)
            for cost in sorted(self.grid.cpu_cost)
            for size in sorted(self.grid.message_size)
        )
