"""The messages between the harness and a load generator: what to send, how far it is, and the command to stop."""

from msgspec import Struct
from msgspec.structs import replace

from bench.config.scenario import Scenario
from bench.model.arrivals import Schedule, ScheduleShare, create_schedule
from bench.model.cell import Cell
from bench.model.message_header import ClockReference
from bench.model.message_keys import KeySequence
from bench.model.message_sizes import SizeSequence
from bench.model.trace import TraceEvents
from bench.workload.span_recorder import join_events


class LoadSpec(Struct, frozen=True, tag="load_spec"):
    """The messages of one trial: which ones, when they are due, their sizes and their CPU cost.

    Message i is due `begin + schedule().due(i)`. Several workers share one specification: each gets the messages of its
    own share, is a producer of its own and numbers its messages from 0.
    """

    run: int
    """number of the trial; every message carries it"""
    rate: float
    """messages/s, the mean over the trial"""
    begin: float
    """CLOCK_MONOTONIC seconds of the machine that `clock` refers to"""
    seconds: float
    message_bytes: int
    cpu_seconds: float
    """CPU time that processing one message takes"""
    entropy: float
    """of the filler: 0 (one letter) to 1 (every byte value but newline)"""
    arrivals: str = "constant"
    producer: int = 0
    limit: float | None = None
    """messages/s above which the generator slows itself on purpose"""
    seed: int = 0
    profile: tuple[tuple[float, float], ...] = ()
    """the steps of one period, each (seconds, relative rate); for arrivals that follow a profile"""
    workers: int = 1
    """how many workers share the messages"""
    member: int | None = None
    """the worker that this share belongs to; None for the whole"""
    sizes: SizeSequence | None = None
    """the size of each message, if sizes differ; `message_bytes` is then their mean"""
    keys: KeySequence | None = None
    clock: ClockReference = ClockReference()
    stamped: bool = True
    """whether each message gets a header of its own; calibration measures the cost of headers by leaving them out"""
    traced: bool = False
    """whether progress carries spans of what a client did that records them"""

    def schedule(self) -> Schedule:
        """Return the due times of these messages, in seconds after `begin`."""
        whole = create_schedule(self.arrivals, self.rate, self.seconds, seed=self.seed, profile=self.profile)
        return whole if self.member is None else ScheduleShare(whole, self.member, self.workers)

    def for_worker(self, member: int) -> "LoadSpec":
        """Return the share of one worker, `member` from 0 to `workers` - 1."""
        limit = self.limit / self.workers if self.limit is not None else None
        return replace(self, producer=member, member=member, limit=limit)


def create_size_sequence(cell: Cell, scenario: Scenario) -> SizeSequence | None:
    """Return the sizes of a cell's messages; None if all have the same size."""
    return SizeSequence(cell.sizes, scenario.load.seed) if cell.sizes is not None else None


def create_key_sequence(scenario: Scenario) -> KeySequence | None:
    """Return the keys of a scenario's messages; None if they have no keys."""
    return KeySequence(scenario.load.keys, scenario.load.seed) if scenario.load.keys is not None else None


class Cancel(Struct, frozen=True, tag="cancel"):
    """The command to stop the load under way; messages that are not sent yet stay unsent."""


class SendProgress(Struct, frozen=True, tag="send_progress"):
    """The progress of a load generator by the moment `at`; counts since the spec's `begin`."""

    run: int
    producer: int
    at: float
    """CLOCK_MONOTONIC seconds of the machine that the specification's clock refers to"""
    accepted: int
    """messages that the source's client took"""
    confirmed: int
    """messages that the source itself confirmed"""
    failed: int
    """messages that the client took and that were finally refused"""
    late: float
    """seconds by which the next message to send is overdue"""
    blocked: float
    """seconds so far in which the source did not take more"""
    done: bool
    max_late: float = 0.0
    """the largest `late` so far, also between two reports"""
    by_worker: dict[int, int] = {}
    """confirmed messages by producer; only for several workers"""
    blocked_late: float = 0.0
    """the part of `blocked` since the generator was last on time"""
    stalled: float = 0.0
    """the largest `late` so far, less the time of it in which the source did not take more"""
    trace: TraceEvents | None = None
    """what the source's client did since the progress before; None if it is not traced"""

    def by_producer(self) -> dict[int, int]:
        """Return the number of confirmed messages of each producer."""
        return self.by_worker or {self.producer: self.confirmed}


class SendProgressSum:
    """The sum of the progress of several workers, as if one worker had sent everything."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._last: dict[int, SendProgress] = {}
        self._trace: TraceEvents | None = None

    def add(self, progress: SendProgress) -> SendProgress | None:
        """Add one worker's progress; a new run starts a new sum.

        Returns:
            The sum; None until every worker has reported once. `late`, `blocked` and `blocked_late` are those of the
            worker that is latest.
        """
        if self._last and next(iter(self._last.values())).run != progress.run:
            self._last = {}
        self._last[progress.producer] = progress
        self._trace = join_events((self._trace, progress.trace))
        if len(self._last) < self._workers:
            return None
        workers = self._last.values()
        latest = max(workers, key=lambda one: one.late)
        trace, self._trace = self._trace, None
        return SendProgress(
            progress.run,
            0,
            at=latest.at if latest.late > 0 else min(one.at for one in workers),
            accepted=sum(one.accepted for one in workers),
            confirmed=sum(one.confirmed for one in workers),
            failed=sum(one.failed for one in workers),
            late=latest.late,
            blocked=latest.blocked,
            done=all(one.done for one in workers),
            max_late=max(one.max_late for one in workers),
            by_worker={one.producer: one.confirmed for one in workers},
            blocked_late=latest.blocked_late,
            stalled=max(one.stalled for one in workers),
            trace=trace,
        )
