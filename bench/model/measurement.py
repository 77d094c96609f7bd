"""Records of planned trials, measurements and results: numbers only, never changed afterwards."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from bench.model.cell import Cell
from bench.model.message_sizes import Sizes
from bench.model.trace import TraceEvents

Purpose = Literal["warm-up", "search", "confirm", "latency", "elasticity"]
Status = Literal["measured", "lower-bound", "upper-bound", "unstable", "failed", "unsupported", "not-measured"]
IntervalKind = Literal["95 %", "bracket"]
"""Meaning of an interval: it contains the truth in 95 of 100 runs, or it lies between two rates that were tried."""
REASONS = {
    "generator": "the load generator could not send more",
    "budget": "the time for this cell was over",
    "highest": "the scenario asks for no higher rate",
    "floor": "the lowest rate of the scenario was too much",
}
"""Texts of those reasons of a bound that are stored as one word; any other reason is a text already."""
EndReason = Literal["complete", "hopeless", "framework died", "source died", "load died", "host gone"]


class PlannedTrial(Struct, frozen=True):
    """A trial to run; durations in seconds."""

    number: int
    """within the cell, from 0"""
    rate: float
    """messages/s"""
    settle: float
    """of the load before the window"""
    window: float
    """in which counters are judged"""
    purpose: Purpose


class Series(Struct, frozen=True):
    """The counters over a trial: seconds since the first message was due, and messages since then.

    A row is taken whenever the processed counter has changed, and at least a few times a second.
    """

    at: list[float] = field(default_factory=list)
    offered: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    processed: list[int] = field(default_factory=list)


class Batches(Struct, frozen=True):
    """The completed micro-batches of a trial, in the order of their ends; empty for a continuous framework.

    Times are seconds since the first message was due. A batch begins when the framework starts to plan it, and ends
    when its result exists.
    """

    begin: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)
    messages: list[int] = field(default_factory=list)


class Buckets(Struct, frozen=True):
    """Latency histograms of each second of a trial, one row for each bucket that is not empty.

    Seconds count from the moment at which the first message was due.
    """

    second: list[int] = field(default_factory=list)
    kind: list[str] = field(default_factory=list)
    bucket: list[int] = field(default_factory=list)
    count: list[int] = field(default_factory=list)


class Latency(Struct, frozen=True):
    """Latency quantiles in seconds; None if nothing was counted."""

    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


class ClockOffset(Struct, frozen=True):
    """The difference between a site's clocks; `host` is the one whose clock may differ most from the harness's."""

    host: str
    offset: float
    """seconds, its clock minus the harness's"""
    bound: float
    """uncertainty of the offset in seconds"""
    max_latency_error: float
    """seconds by which a latency may be wrong; if load and framework both run elsewhere, the sum of the two largest"""


class Measurement(Struct, frozen=True):
    """The measurement of one trial."""

    planned: PlannedTrial
    started: str
    """UTC, only a label"""
    ended: EndReason
    batch_interval: float
    seconds: float
    """from the first due time until the drain was over"""
    offered: int
    """messages due by the end of the window, or by the moment at which the trial was stopped early"""
    sent: int
    """messages that the source confirmed, in the whole trial"""
    failed: int
    """messages that the source's client took and finally refused"""
    processed: int
    lost: int
    duplicated: int
    out_of_order: int
    corrupted: int
    drained: bool
    """whether everything sent was processed before the drain's deadline"""
    late: float
    """seconds by which the generator was behind its due times at the end of the window"""
    blocked: float
    """seconds in which the source did not take more, by then"""
    cpu_requested_s: float
    """CPU cost of the processed messages"""
    cpu_used_s: float | None
    """CPU time spent on it; None where a program under test does not say"""
    from_due: Latency = Latency()
    from_sent: Latency = Latency()
    processing: Latency = Latency()
    negative: int = 0
    """messages that were done before they were sent, by the clocks; more than 0 is impossible"""
    clocks: ClockOffset | None = None
    """of a site with several hosts: limits the accuracy of `from_due` and `from_sent`"""
    cpu: dict[str, float] = field(default_factory=dict)
    """CPU seconds by role (framework, source, load, harness) and of the machine (busy, steal, kernel, available) in the
    window, which lasted `seconds`"""
    memory: dict[str, float] = field(default_factory=dict)
    """resident bytes by role at the end of the window"""
    memory_slope: dict[str, float] = field(default_factory=dict)
    """growth of resident memory by role in bytes/s, from the beginning of the window to its end"""
    usage: dict[str, dict[str, float]] = field(default_factory=dict)
    """in the window, by role: sent_bytes and received_bytes (TCP), link_sent_bytes and link_received_bytes (those of
    other hosts), read_bytes and written_bytes (disk), gc_seconds (JVMs)"""
    counts_exact: bool = True
    """whether lost and duplicated are exact; otherwise they are the fewest that are possible"""
    blocked_late: float | None = None
    """the part of `blocked` since the generator was last on time; None if unknown"""
    stalled: float | None = None
    """the longest lateness in seconds that the source did not cause, by the end of the window; None if unknown"""
    hosts: dict[str, dict[str, float]] = field(default_factory=dict)
    """by host of the site, in the window: seconds, CPU seconds (busy, steal, available), bytes of all network cards and
    disks (received_bytes, sent_bytes, read_bytes, written_bytes), memory_bytes in use at its end, gc_seconds of the
    site's JVMs there, in windows of about 30 s and more; what an exporter does not serve, and a host that did not
    answer, is missing"""
    note: str = ""
    """one line if something died or failed"""
    series: Series = Series()
    """stored in a file of its own beside the journal"""
    batches: Batches = Batches()
    """stored in a file of its own beside the series"""
    purged: bool = False
    """whether what was left of an overloaded trial was dropped on purpose, sooner than the drain's deadline: nothing is
    wrong with the framework"""
    unverified: int = 0
    """processed messages whose bodies nobody verified: a program under test did not say what it read"""
    warm_s: float | None = None
    """seconds of load that the framework's processes had worked off before this trial; None if unknown"""
    processed_again: int = 0
    """messages that the framework processed once more because it began again from an earlier position to change its
    workers, each as often as that happened; not in `duplicated`"""
    latencies: Buckets = Buckets()
    """stored in a file of its own, in latency/"""
    trace: TraceEvents = TraceEvents()
    """stored in files of its own, in traces/; empty if the trial was not traced"""
    load_s: float | None = None
    """seconds from the beginning until the load ended or was given up; None in runs of earlier versions"""

    @property
    def deployment_reusable(self) -> bool:
        """Return whether the next trial can use the same deployment; otherwise it needs a new one."""
        return self.drained and self.ended in ("complete", "hopeless") and self.lost == 0

    @property
    def window_s(self) -> float:
        """Return how many seconds of the window were measured: fewer than planned where the trial was given up."""
        return max(0.0, min(self.planned.window, self.offered_s - self.planned.settle))

    @property
    def offered_s(self) -> float:
        """Return how many seconds of the schedule were offered."""
        return self.offered / self.planned.rate if self.load_s is None else self.load_s

    @property
    def sent_s(self) -> float:
        """Return how many seconds of the schedule the sent messages are."""
        return self.offered_s * self.sent / self.offered if self.offered else 0.0


class ObjectiveResult(Struct, frozen=True):
    """The highest rate at which one objective ("backlog", "loss" or "p99") holds by itself; rates in messages/s.

    `kept_hz` is the highest rate at which a trial met it. A bound without a trial on its side is None.
    """

    name: str
    estimate_hz: float | None = None
    low_hz: float | None = None
    high_hz: float | None = None
    kept_hz: float | None = None


class Bound(Struct, frozen=True):
    """An upper bound of a rate in messages/s.

    No measurement can exceed a hard bound. A short trial may exceed a soft one, such as a disk's: the operating system
    keeps written data in memory before it writes them to the disk.
    """

    name: str
    hz: float
    hard: bool = True


RecordedRate = Annotated[float, Meta(ge=0, le=1e15)]


class Result(Struct, frozen=True):
    """The result of one cell, an object of cells.json; rates in messages/s. A missing value is None, never 0."""

    system: str
    framework: str
    source: str
    message_bytes: Annotated[int, Meta(ge=1)]
    cpu_seconds: Annotated[float, Meta(ge=0)]
    status: Status
    reason: str | None = None
    estimate_hz: RecordedRate | None = None
    low_hz: RecordedRate | None = None
    high_hz: RecordedRate | None = None
    interval: IntervalKind | None = None
    """meaning of [low_hz, high_hz]; None without an interval"""
    precision_reached: bool | None = None
    """whether a measured interval is as narrow as the scenario asks; None for any other status"""
    confirmed_hz: float | None = None
    growing_hz: float | None = None
    """the rate if batches may grow beyond the interval they were asked to keep; None for a continuous framework"""
    noise: tuple[float, ...] = ()
    """likelihood of each noise of the search's grid, the highest 1; searches of other cells use it"""
    warm_ups: tuple[float, ...] = ()
    """likelihood of each time until full speed of the search's grid, the highest 1; other cells of the system use it"""
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
    """cores that each role (framework, source, load, harness) and the whole machine (busy, steal) used; None for a role
    on another host, or whose processes are not ours"""
    objectives: tuple[ObjectiveResult, ...] = ()
    """one for each objective, if the strategy estimates several at once"""
    sizes: Sizes | None = None
    """the distribution of message sizes, if they differ; `message_bytes` is its mean"""
    remark: str | None = None
    """one sentence that a reader of the numbers must know; None for most results"""
    soft_bounds: tuple[Bound, ...] = ()
    """soft bounds by the source's network and disks, the lowest first; `bound_hz` is the lowest hard bound"""

    @property
    def cell(self) -> Cell:
        """Return the cell that the result belongs to."""
        return Cell(self.framework, self.source, self.message_bytes, self.cpu_seconds, self.sizes)

    @property
    def fixed_share(self) -> float | None:
        """Return the part of a batch's interval that does not depend on its messages.

        None if it is not known, and where the rate would not rise if batches grew: they are not its limit.
        """
        if not self.estimate_hz or self.growing_hz is None or self.growing_hz <= self.estimate_hz:
            return None
        return 1 - self.estimate_hz / self.growing_hz

    @property
    def was_ended_by_error(self) -> bool:
        """Return whether an error ended the cell before its search had an answer, which has trials."""
        return self.status == "failed" and not self.trials
