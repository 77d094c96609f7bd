"""What a load is told to send, and what it says it has sent: the words between the harness and its load."""

from msgspec import Struct
from msgspec.structs import replace

from bench.config.scenario import Scenario
from bench.model.arrivals import Schedule, ScheduleShare, create_schedule
from bench.model.cell import Cell
from bench.model.message_codec import ClockReference
from bench.model.message_keys import KeySequence
from bench.model.message_sizes import SizeSequence


class LoadSpec(Struct, frozen=True, tag="order"):
    """One trial's worth of messages: which, when due, how large, at which CPU cost.

    `begin` is CLOCK_MONOTONIC seconds of the machine whose `clock` it is, and so is what messages carry; message i is due
    `schedule().due(i)` seconds later; `limit` slows the generator on purpose.
    Of several workers each gets its own share of the messages and is a producer that numbers them itself.
    """

    run: int
    rate: float
    begin: float
    seconds: float
    message_bytes: int
    cpu_seconds: float
    entropy: float
    arrivals: str = "constant"
    producer: int = 0
    limit: float | None = None
    seed: int = 0
    profile: tuple[tuple[float, float], ...] = ()
    workers: int = 1
    """among whom it is to be shared"""
    member: int | None = None
    """whose share it is; None where it is the whole order"""
    sizes: SizeSequence | None = None
    """where messages differ in size; `message_bytes` is then their mean"""
    keys: KeySequence | None = None
    clock: ClockReference = ClockReference()
    stamped: bool = True
    """whether each message has a header of its own; without, what writing headers costs is seen (bench calibrate)"""

    def schedule(self) -> Schedule:
        whole = create_schedule(self.arrivals, self.rate, self.seconds, seed=self.seed, profile=self.profile)
        return whole if self.member is None else ScheduleShare(whole, self.member, self.workers)

    def for_worker(self, member: int) -> "LoadSpec":
        """The order of one of its workers."""
        limit = self.limit / self.workers if self.limit is not None else None
        return replace(self, producer=member, member=member, limit=limit)


def create_size_sequence(cell: Cell, scenario: Scenario) -> SizeSequence | None:
    """Which size each message of a cell has; None where all have one."""
    return SizeSequence(cell.sizes, scenario.load.seed) if cell.sizes is not None else None


def create_key_sequence(scenario: Scenario) -> KeySequence | None:
    """Which key each message has; None where they have none."""
    return KeySequence(scenario.load.keys, scenario.load.seed) if scenario.load.keys is not None else None


class Cancel(Struct, frozen=True, tag="halt"):
    """Stop the order that is under way: what is not sent yet stays unsent."""


class SendProgress(Struct, frozen=True, tag="sent"):
    """How far a load is with an order at the moment `at`; counts since the order began.

    `accepted` was taken by the source's client, `confirmed` by the source itself, `failed` by neither in the end. `late` is by how
    many seconds the next message to send is overdue, `blocked` for how many seconds so far the source did not take more.
    """

    run: int
    producer: int
    at: float
    accepted: int
    confirmed: int
    failed: int
    late: float
    blocked: float
    done: bool
    max_late: float = 0.0
    """the most that `late` has been so far, in the middle of a turn too"""
    by_worker: dict[int, int] = {}
    """by producer, what was confirmed; of several workers only"""

    def by_producer(self) -> dict[int, int]:
        """What was confirmed of each producer."""
        return self.by_worker or {self.producer: self.confirmed}


class SendProgressSum:
    """What several workers say of one order, added up as if one had said it."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._last: dict[int, SendProgress] = {}

    def add(self, sent: SendProgress) -> SendProgress | None:
        """The sum after this account; None until every worker has given one. Late is the one that is latest, with its excuse."""
        if self._last and next(iter(self._last.values())).run != sent.run:
            self._last = {}
        self._last[sent.producer] = sent
        if len(self._last) < self._workers:
            return None
        all_of = self._last.values()
        latest = max(all_of, key=lambda one: one.late)
        return SendProgress(
            sent.run,
            0,
            at=latest.at if latest.late > 0 else sent.at,
            accepted=sum(one.accepted for one in all_of),
            confirmed=sum(one.confirmed for one in all_of),
            failed=sum(one.failed for one in all_of),
            late=latest.late,
            blocked=latest.blocked,
            done=all(one.done for one in all_of),
            max_late=max(one.max_late for one in all_of),
            by_worker={one.producer: one.confirmed for one in all_of},
        )
