"""What a load is told to send, and what it says it has sent: the words between the harness and its load."""

from msgspec import Struct

from bench.schedule import Schedule, schedule_of


class Order(Struct, frozen=True, tag="order"):
    """One trial's worth of messages: which, when due, how large, at which CPU cost.

    `begin` is CLOCK_MONOTONIC seconds; message i is due `schedule().due(i)` seconds later; `limit` slows the generator on purpose.
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

    def schedule(self) -> Schedule:
        return schedule_of(self.arrivals, self.rate, self.seconds)


class Halt(Struct, frozen=True, tag="halt"):
    """Stop the order that is under way: what is not sent yet stays unsent."""


class Sent(Struct, frozen=True, tag="sent"):
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


class Ready(Struct, frozen=True, tag="ready"):
    """A child process stands: it takes orders now."""


class Trouble(Struct, frozen=True, tag="trouble"):
    """A child process cannot do what it was told; it will end."""

    reason: str
