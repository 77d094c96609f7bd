"""The faces of the rooms. A room is a module that offers the classes named here; it is found by kind and name (bench.plugins.registry).

    kind         entry points        offers                    stands in
    source       bench.producers     Settings, Source, Sender  the harness; its Sender in the load's process
    consumer     bench.consumers     Consumer                  whatever process reads a source with our own code
    framework    bench.frameworks    Settings, Framework       the harness, beside what it runs
    load         bench.workload.open_loop          LoadGenerator                      the harness, beside the process that sends
    report       bench.reports       write(run) -> files       bench report; reads the run's folder alone (bench.storage.run_folder)

Every face has the same four verbs: open, act, ask, close. `open` and `close` come once each, `close` also after a failed `open`;
`act` and `ask` come in between, do not block for longer than they say, and raise a HarnessError when the room cannot go on.
`refuses` comes before everything and says in a sentence why a room cannot do a cell, or None.

A source's module may offer more, the last four for calibrations (bench.calibration.generator_ceiling); all may be left out:

    hazards  (settings, bytes of the largest message, entropy) -> what is wrong with them (bench.plugins.client_lint)
    RIVALS   by name, loops around the source's own client without anything of ours, which the load is measured against
    discard  takes messages off the source and throws them away
    STORES   True for a source that takes messages also when nobody reads it; without this or `discard` it is not calibrated
    ALONE    True where only one sender can serve it (a port, a pipe), and so one worker
    KEYS     True where messages can have keys: the sender has `send_keyed`, and messages of one key keep their order
    LOAD     the only load that can send to it, where that is not any ("inline" for a source within the harness's process)
"""

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from threading import Event
from typing import Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from bench.analysis.bounds import Copies
from bench.config.site import Site
from bench.model.cell import Cell
from bench.system.supervisor import Supervisor
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.load_spec import LoadSpec, SendProgress
from bench.workload.processing import MessageProcessor
from bench.workload.rate_meter import RateMeter


class Endpoint(Struct, frozen=True):
    """Where a source stands for one cell; plain data, so that it can be told to another process."""

    source: str
    """the room that opened it"""
    address: str
    """host:port, several separated by commas; or a folder"""
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


class Closable(Protocol):
    """Something that stands between cells: a server, a session, a load's process."""

    def alive(self) -> bool:
        """Whether it can go on serving."""

    def close(self) -> None:
        """End it; idempotent."""


Resource = TypeVar("Resource", bound=Closable)


class RunEnvironment(Protocol):
    """What rooms stand on during a run: a folder, this site, child processes, and what is kept between cells."""

    site: Site
    cores: int
    """of this machine, that a framework here has; for one that may stand on the site: site.cores_of"""
    supervisor: Supervisor
    data: Path
    """for data of sources; deleted at the end of the run"""
    cache: Path
    """for downloads; outlives the run"""
    note: Callable[[str], None]
    """tells the person what takes its time"""
    workers: int
    """processes that the load has"""
    web: bool
    """whether the load opens a page of its own, on loopback"""

    def cached_resource(self, key: Hashable, opened: Callable[[], Resource]) -> Resource:
        """The thing of that key: the one that stands, or, where none stands or it died, a new one. Closed at the end of the run."""


class Source(Protocol):
    """How messages enter."""

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None: ...

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:
        """Make what the cell needs: a topic, an empty folder, a port. Nothing of an earlier cell is in it."""

    def clear(self) -> None:
        """Remove what a finished trial left behind (files that were read); called when everything sent was processed."""

    def close(self) -> None: ...


@runtime_checkable
class Copying(Protocol):
    """A source that says what it makes of each byte, where it does more than hand it on."""

    def copies(self, site: Site) -> Copies | None: ...


class Sender(Protocol):
    """A source's client in the load's process.

    One that can take a message in two pieces, header and filler, offers `send_pieces` and `gathers_from`, which spares large
    messages half of their cost; one whose messages can have keys offers `send_keyed`, and its module says KEYS; one that waits
    within `send` for its source to make room counts for how long in `waited` (bench.workload.batch_writer).
    """

    def open(self, endpoint: Endpoint) -> None: ...

    def send(self, messages: Sequence[bytes]) -> int:
        """Offer messages in order; how many were taken. Fewer than offered = the source does not take more now. Never blocks."""

    def confirmed(self) -> tuple[int, int]:
        """(confirmed, failed) since `open`: what the source itself acknowledged, and what it finally refused. Never blocks."""

    def close(self) -> None: ...


class Consumer(Protocol):
    """A source's reader in our own code."""

    def open(self, endpoint: Endpoint, member: int, members: int) -> None:
        """Read this member's share of the endpoint's parts, from their ends; when it returns, nothing sent later is missed."""

    def take(self, most: int, timeout: float) -> Sequence[bytes]:
        """At most `most` messages of one part in its order, as soon as there are any; empty after `timeout` seconds."""

    def close(self) -> None: ...


class Framework(Protocol):
    """What is under test."""

    def unsupported_reason(self, cell: Cell, endpoint_source: str) -> str | None: ...

    @property
    def batch_interval(self) -> float:
        """Seconds between two moments at which it shows progress; 0 when it goes on continuously."""

    def open(self, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> None:
        """Run the work on every message of the endpoint, until `close`. Returns once it is reading."""

    def ask(self) -> list[ProcessingReport]:
        """What was processed since the last call. Never blocks. Raises Died when the framework is gone."""

    def close(self) -> None: ...


class LoadGenerator(Protocol):
    """What sends a schedule's messages through a source's Sender as they fall due."""

    def open(self, endpoint: Endpoint, env: RunEnvironment) -> None: ...

    def start(self, spec: LoadSpec) -> None:
        """Take an order; returns at once. There is one order at a time."""

    def cancel(self) -> None:
        """Give up what is not sent yet; a last `Sent` with `done` follows."""

    def ask(self) -> list[SendProgress]:
        """How far the order is, since the last call. Never blocks. Raises Died when the load is gone."""

    def close(self) -> None: ...


BaselineProducer = Callable[[Endpoint, bytes, RateMeter, Path], None]
"""Sends one message over and over until the meter, told what is confirmed, says that it is over; the path is the cache."""

Discard = Callable[[Endpoint, Event], None]
"""Reads an endpoint and forgets what it read until the event is set, or its process ended."""
