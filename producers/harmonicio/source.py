"""HarmonicIO's own connector as a source: messages go from the load's process straight to the PEs.

"Confirmed" means that a PE has processed the message, or that the master's queue has it in its journal.
"""

import time
from collections.abc import Sequence
from secrets import token_hex
from typing import Annotated, Literal

from msgspec import Struct

from bench.errors import PluginError
from bench.model.cell import Cell
from bench.plugins.protocols import Endpoint, RunEnvironment
from bench.units import Seconds, Size, limits
from frameworks.harmonicio.cluster import cluster_of, too_large
from frameworks.harmonicio.engine.connector import Feeder, Options
from frameworks.harmonicio.engine.connector.blocking import wait_for_sockets
from frameworks.harmonicio.engine.errors import HarmonicError

CONNECT_SECONDS = 20.0
TIMEOUT_S = 0.01
"""Seconds that a full connector waits for credit, once it has said that it is full: the load counts them as its source's."""
LOOK_EVERY = 0.01
"""Seconds between two looks for acknowledgements while nothing is sent: a load asks far more often, and CPU is scarce."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The connector's."""

    delivery: Literal["at-least-once", "at-most-once"] = "at-least-once"
    overflow: Literal["full", "absent", "never"] = "absent"
    """when messages go to the master's queue: no PE has credit, there is no PE, or never"""
    batch: Annotated[Size, limits(least="1 kB", most="64 MB")] = Size(262_144)
    """largest frame of small messages"""
    held: Annotated[Size, limits(least="1 MB", most="1 GB")] = Size(128 * 10**6)
    """bytes on their way, unacknowledged, at most"""
    patience: Seconds = Seconds(0.5)
    """how long PEs may be without credit before messages go to the queue, with overflow: full"""

    def __post_init__(self) -> None:
        """Refuse what would not be as it is called: the queue brings a message again when the PE that had it is lost."""
        if self.delivery == "at-most-once" and self.overflow == "full":
            raise ValueError("at-most-once cannot go through the queue, which sends again; set overflow: never")


class Source:
    """A stream of its own for each cell, at the master of the run's cluster."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:  # noqa: ARG002  every filler can pass
        return too_large(cell)

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:  # noqa: ARG002  all cells look alike to it
        reach, settings = cluster_of(env).reach, self._settings
        client: dict[str, str | int | float | bool] = {
            "delivery": settings.delivery,
            "overflow": "never" if settings.delivery == "at-most-once" else settings.overflow,
            "batch": int(settings.batch),
            "held": int(settings.held),
            "patience": float(settings.patience),
            "control": reach.port,
            "token": reach.token,
            "tls": reach.tls or "",
            "elsewhere": env.site.elsewhere("stream"),
        }
        name = f"stream-{token_hex(4)}"  # never used before: a master may have a queue of an earlier run
        return Endpoint("stream", f"{reach.data_host}:{reach.data_port}", name, ordered=False, client=client)

    def clear(self) -> None:
        """Nothing stays behind."""

    def close(self) -> None:
        """The cluster belongs to the run."""


class Sender:
    """A connector, whose feeder never blocks."""

    def __init__(self) -> None:
        self._feeder: Feeder | None = None
        self._looked, self._full = 0.0, False

    def open(self, endpoint: Endpoint) -> None:
        host, port = endpoint.address.rsplit(":", 1)
        client = endpoint.client
        self._feeder = Feeder(
            Options(
                c_name=endpoint.name, host=host, port=int(port), batch_bytes=int(client["batch"]), held_bytes=int(client["held"]),
                delivery="at-most-once" if client["delivery"] == "at-most-once" else "at-least-once",
                overflow="full" if client["overflow"] == "full" else "absent" if client["overflow"] == "absent" else "never",
                patience=float(client["patience"]), token=str(client["token"]), tls=str(client["tls"]) or None,
            )
        )  # fmt: skip
        deadline = time.monotonic() + CONNECT_SECONDS
        while not self._feeder.connected:
            self._step(self._feeder)
            if time.monotonic() > deadline:
                raise PluginError("stream", "open", f"no master answers at {endpoint.address}")
            time.sleep(0.005)

    def send(self, messages: Sequence[bytes]) -> int:
        feeder = self._feeder
        assert feeder is not None, "open comes first"
        self._step(feeder)
        taken = feeder.offer(messages)
        if not taken and self._full:
            wait_for_sockets(feeder.watched_sockets(), TIMEOUT_S)
            self._step(feeder)
            taken = feeder.offer(messages)
        self._full = taken < len(messages)
        return taken

    def confirmed(self) -> tuple[int, int]:
        assert self._feeder is not None, "open comes first"
        if time.monotonic() >= self._looked + LOOK_EVERY:
            self._step(self._feeder)
        return self._feeder.acked, self._feeder.failed

    def close(self) -> None:
        feeder, self._feeder = self._feeder, None
        if feeder is not None:
            feeder.close()

    def _step(self, feeder: Feeder) -> None:
        self._looked = time.monotonic()
        try:
            feeder.step(self._looked)
        except HarmonicError as problem:
            raise PluginError("stream", "send", str(problem)) from problem
