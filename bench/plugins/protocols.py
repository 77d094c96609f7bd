"""Protocols that plugins satisfy. Declarations are in bench.plugins.plugin; the registry finds them.

A sender, a consumer, a load generator and a running framework are open from the beginning: the function that makes one
connects it, or raises a HarnessError and leaves nothing open. They act until `close`, which may come twice. What comes
between does not block for longer than it says, and raises a HarnessError when the plugin cannot go on. A source and a
framework are asked before anything runs: `unsupported_reason` says in a sentence why a plugin cannot do a cell, or
None.
"""

from collections.abc import Hashable, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from bench.elasticity.live_samples import WorkerCounters
from bench.model.cell import Cell
from bench.plugins.environment import RunEnvironment
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.load_spec import LoadSpec, SendProgress
from bench.workload.processing import MessageProcessor


class Endpoint(Struct, frozen=True):
    """The address at which a source serves one cell; plain data, so that it can be sent to another process."""

    source: str
    """the plugin that opened it"""
    address: str
    """host:port, several separated by commas; or a folder. Of a SplitSource each is that of one sender"""
    name: str = ""
    """of the topic, where there are topics"""
    parts: int = 1
    """partitions that can be read side by side"""
    ordered: bool = True
    """whether the messages of one part arrive in the order in which they were sent"""
    ordered_by_key: bool = False
    """whether, where they do not, at least those of one key do"""
    client: dict[str, str | int | float | bool] = {}
    """settings of the source's clients"""


class Source(Protocol):
    """A way for messages to enter a framework."""

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:
        """Return why it cannot carry the cell's messages, in a sentence; None when it can."""

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:
        """Make what the cell needs: a topic, an empty folder, a port. It holds nothing of an earlier cell."""

    def reset(self) -> None:
        """Remove what a finished trial left behind, such as files; called when everything sent was processed."""

    def close(self) -> None:
        """Remove what `open` made."""


class Sender(Protocol):
    """A client of a source in the load generator's process.

    One that can take a message in two pieces, header and filler, offers `send_pieces` and `gathers_from`, which spares
    large messages half of their cost; one whose messages can have keys offers `send_keyed`; one that waits within
    `send` for its source to free space counts the seconds in `waited` (bench.workload.batch_writer).
    """

    def send(self, messages: Sequence[bytes]) -> int:
        """Offer messages in order. Never blocks.

        Returns:
            The number of messages taken; fewer than offered means that the source takes no more now.
        """

    def confirmed(self) -> tuple[int, int]:
        """Return (confirmed, failed) so far: acknowledged by the source, and finally refused by it.

        Never blocks.
        """

    def close(self) -> None:
        """Disconnect; what is not confirmed is given up."""


class Consumer(Protocol):
    """A reader of a member's share of a source, in our own code."""

    def take(self, max_messages: int, timeout: float) -> Sequence[bytes]:
        """Return up to `max_messages` messages of one part in its order, as soon as there are any.

        An empty sequence after `timeout` seconds without one.
        """

    def close(self) -> None:
        """Disconnect."""


class Framework(Protocol):
    """The system under test, without its source."""

    def unsupported_reason(self, cell: Cell, source: str) -> str | None:
        """Return why it cannot process the cell from the source of that name, in a sentence; None when it can."""

    @property
    def batch_interval(self) -> float:
        """Return the seconds between two moments at which it shows progress; 0 when it goes on continuously."""

    def open(self, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> "RunningFramework":
        """Run the work on every message of the endpoint. Returns once it is reading.

        Raises a HarnessError, leaving nothing open, when it cannot.
        """


class RunningFramework(Protocol):
    """A framework that processes the messages of one cell until `close`."""

    def poll(self) -> list[ProcessingReport]:
        """Return what was processed since the last call. Never blocks.

        Raises ProcessDiedError when the framework is gone.
        """

    def close(self) -> None:
        """Stop."""


@runtime_checkable
class SessionFramework(Protocol):
    """A running framework whose processes outlive a cell; any other one has new processes after each `open`."""

    @property
    def session(self) -> Hashable:
        """Return a name of its present processes: another name means others, which are cold."""


@runtime_checkable
class ElasticFramework(Protocol):
    """A running framework whose number of workers can change while it processes messages."""

    @property
    def max_workers(self) -> int:
        """Return the most workers that it can have here; the fewest are one."""

    def rescale(self, workers: int) -> None:
        """Begin to change to so many workers; returns at once, and `poll` goes on with the change.

        A worker that has to go processes what it has received. No message is lost, whichever worker it is with. A
        framework that goes on from an earlier position processes some of them again, and its reports say that it did
        (`ProcessingReport.restart`).
        """

    def workers(self) -> Sequence[WorkerCounters]:
        """Return what each worker has counted, of those that take messages now: as many as there are.

        A worker that starts is missing until it takes messages, and one that ends is missing from its last message on.
        Raises a HarnessError when the framework does not answer.
        """


class LoadGenerator(Protocol):
    """Sender of a schedule's messages, through a source's Sender, as they fall due."""

    def start(self, spec: LoadSpec) -> None:
        """Begin to send; returns at once. There is one spec at a time."""

    def cancel(self) -> None:
        """Give up what is not sent yet; a last SendProgress with `done` follows."""

    def poll(self) -> list[SendProgress]:
        """Return the progress since the last call. Never blocks. Raises ProcessDiedError when the generator is gone."""

    def close(self) -> None:
        """Close the senders."""
