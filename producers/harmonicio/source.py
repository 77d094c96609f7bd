"""HarmonicIO's own connector as a source: messages go from the load generator straight to the PEs.

"Confirmed" means that a PE has processed the message, or that the master's queue has it in its journal.
"""

from secrets import token_hex
from typing import Annotated, Literal

from msgspec import Struct

from bench.config.address import Address
from bench.model.cell import Cell
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint
from bench.units import Seconds, Size, limits
from frameworks.harmonicio.cluster import cluster_of, too_large
from frameworks.harmonicio.site import HARMONICIO_SITE


class StreamSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the connector."""

    delivery: Literal["at-least-once", "at-most-once"] = "at-least-once"
    overflow: Literal["full", "absent", "never"] = "absent"
    """when messages go to the master's queue: `full` = no PE has credit, `absent` = there is no PE, `never`"""
    batch: Annotated[Size, limits(least="1 kB", most="64 MB")] = Size(262_144)
    """largest frame of small messages"""
    max_in_flight: Annotated[Size, limits(least="1 MB", most="1 GB")] = Size(128 * 10**6)
    """largest number of unacknowledged bytes"""
    credit_timeout: Seconds = Seconds(0.5)
    """how long PEs may be without credit before messages go to the queue, with overflow: full"""

    def __post_init__(self) -> None:
        """Refuse a contradiction: the queue sends a message again when the PE that had it is lost."""
        if self.delivery == "at-most-once" and self.overflow == "full":
            raise ValueError("at-most-once cannot go through the queue, which sends again; set overflow: never")


class StreamSource:
    """A stream for each cell, at the master of the run's cluster."""

    def __init__(self, settings: StreamSettings) -> None:
        self._settings = settings

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:  # noqa: ARG002  every filler can pass
        """Return why it cannot carry the cell's messages, in a sentence; None when it can."""
        return too_large(cell)

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:  # noqa: ARG002  all cells look alike to it
        """Make what the cell needs and return its endpoint.

        Raises:
            SiteError: a token file of the site cannot be read.
            ServiceError: the run's own cluster does not come up.
        """
        reach, settings = cluster_of(env).reach, self._settings
        client: dict[str, str | int | float | bool] = {
            "delivery": settings.delivery,
            "overflow": "never" if settings.delivery == "at-most-once" else settings.overflow,
            "batch": int(settings.batch),
            "max_in_flight": int(settings.max_in_flight),
            "credit_timeout": float(settings.credit_timeout),
            "control": reach.port,
            "token_file": reach.token_file or "",
            "tls": reach.tls or "",
            "elsewhere": HARMONICIO_SITE.read(env.site) is not None,
        }
        name = f"stream-{token_hex(4)}"  # never used before: a master may have a queue of an earlier run
        return Endpoint("stream", str(Address(reach.data_host, reach.data_port)), name, ordered=False, client=client)

    def reset(self) -> None:
        """Do nothing: a trial leaves nothing behind."""

    def close(self) -> None:
        """Do nothing: the cluster belongs to the run."""
