"""What is planned, what was seen, and what follows for a cell: numbers only, never changed afterwards."""

from typing import Literal

from msgspec import Struct, field

from bench.model.cell import Cell
from bench.model.message_sizes import Sizes

Purpose = Literal["warm-up", "search", "confirm", "latency"]
Status = Literal["measured", "lower-bound", "upper-bound", "unstable", "failed", "unsupported"]
Ending = Literal["complete", "hopeless", "framework died", "source died", "load died", "host gone"]


class Planned(Struct, frozen=True):
    """One trial to be made: its number within the cell, its rate in messages/s, and how long its parts last in seconds."""

    number: int
    rate: float
    settle: float
    window: float
    purpose: Purpose


class Series(Struct, frozen=True):
    """The counters over a trial; seconds since the first message was due, and messages since then.

    A row is taken whenever the processed counter has moved, and at least a few times a second.
    """

    at: list[float] = field(default_factory=list)
    offered: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    processed: list[int] = field(default_factory=list)


class Buckets(Struct, frozen=True):
    """Histograms of each second of a trial, a row for each bucket that holds anything; seconds since the first message was due."""

    second: list[int] = field(default_factory=list)
    kind: list[str] = field(default_factory=list)
    bucket: list[int] = field(default_factory=list)
    count: list[int] = field(default_factory=list)


class Latency(Struct, frozen=True):
    """Quantiles in seconds; None where nothing was counted."""

    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


class ClockOffset(Struct, frozen=True):
    """How far clocks of a site's hosts were apart; the host is the one whose clock may have been off ours most."""

    host: str
    offset: float
    """seconds, its clock minus ours"""
    bound: float
    """seconds up to which the offset is known"""
    most: float
    """seconds by which a latency may be wrong: where load and framework may both be elsewhere, the sum of the two largest"""


class Measurement(Struct, frozen=True):
    """What one trial saw."""

    planned: Planned
    started: str
    """UTC, a label"""
    ended: Ending
    batch_interval: float
    seconds: float
    """from the first message due until the drain was over"""
    offered: int
    """due by the end of the window, or by the moment at which the trial was given up"""
    sent: int
    """confirmed by the source, in the whole trial"""
    failed: int
    """given to the source's client and finally refused"""
    processed: int
    lost: int
    duplicated: int
    out_of_order: int
    corrupted: int
    drained: bool
    """whether everything sent was processed before the drain's deadline"""
    late: float
    """by how many seconds the generator was behind its due times at the end of the window"""
    blocked: float
    """for how many seconds the source did not take more, by then"""
    cpu_requested_s: float
    cpu_used_s: float
    """CPU seconds that the messages asked for and that were spent on them"""
    from_due: Latency = Latency()
    from_sent: Latency = Latency()
    processing: Latency = Latency()
    negative: int = 0
    """messages that were done before they were sent, by the clocks: impossible"""
    clocks: ClockOffset | None = None
    """of a site with several hosts: every latency but that of processing alone is known no better"""
    cpu: dict[str, float] = field(default_factory=dict)
    """CPU seconds by role (framework, source, load, harness) and of the whole machine (busy, steal, available) in `seconds`"""
    memory: dict[str, float] = field(default_factory=dict)
    """resident bytes by role at the end of the window"""
    memory_slope: dict[str, float] = field(default_factory=dict)
    """bytes/s by which they grew from the beginning of the window to its end"""
    usage: dict[str, dict[str, float]] = field(default_factory=dict)
    """in the window, by role: sent_bytes and received_bytes (TCP), link_sent_bytes and link_received_bytes (those of other hosts),
    read_bytes and written_bytes (disk), gc_seconds (JVMs)"""
    note: str = ""
    """one line when something died or gave trouble"""
    series: Series = Series()
    """kept in a file of its own beside the journal"""
    latencies: Buckets = Buckets()
    """likewise: histograms of each second, in latency/"""

    @property
    def left_clean(self) -> bool:
        """Whether the rig it was made on is ready for the next trial; otherwise a fresh one is needed."""
        return self.drained and self.ended in ("complete", "hopeless") and self.lost == 0


class ObjectiveResult(Struct, frozen=True):
    """What the trials of a cell say of one objective by itself: "backlog", "loss" or "p99"; rates in messages/s.

    `kept_hz` is the highest rate at which it was kept. None where nothing was tried on that side.
    """

    name: str
    estimate_hz: float | None = None
    low_hz: float | None = None
    high_hz: float | None = None
    kept_hz: float | None = None


class Bound(Struct, frozen=True):
    """A rate in messages/s that something does not let through more of.

    Above a hard one theory says no. Above a soft one a trial may come for a while: what is written to a disk lies in memory first.
    """

    name: str
    hz: float
    hard: bool = True


class Result(Struct, frozen=True):
    """Of one cell; an object of cells.json. Rates are messages/s; a value that does not exist is None, never 0."""

    system: str
    framework: str
    source: str
    message_bytes: int
    cpu_seconds: float
    status: Status
    reason: str | None = None
    estimate_hz: float | None = None
    low_hz: float | None = None
    high_hz: float | None = None
    confirmed_hz: float | None = None
    bound_hz: float | None = None
    bound: str | None = None
    limited_by: str | None = None
    generator_hz: float | None = None
    trials: int = 0
    seconds: float = 0.0
    sent: int = 0
    processed: int = 0
    lost: int = 0
    duplicated: int = 0
    corrupted: int = 0
    latency_s: Latency = Latency()
    cpu_share: dict[str, float | None] = field(default_factory=dict)
    """Cores that each role (framework, source, load, harness) and the whole machine (busy, steal) used at the confirmed rate; None for
    a role on another host"""
    objectives: tuple[ObjectiveResult, ...] = ()
    """one for each objective, where the strategy answers several at once"""
    sizes: Sizes | None = None
    """the distribution of message sizes, where they differ; `message_bytes` is its mean"""
    soft_bounds: tuple[Bound, ...] = ()
    """of the source's network and disks, the lowest first; soft ones, which `bound_hz` does not know"""

    @property
    def cell(self) -> Cell:
        """The cell that the result belongs to."""
        return Cell(self.framework, self.source, self.message_bytes, self.cpu_seconds, self.sizes)
