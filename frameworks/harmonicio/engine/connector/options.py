"""The options of a connector."""

from typing import Literal

from msgspec import Struct

from frameworks.harmonicio.engine.errors import ConfigError


class Options(Struct, frozen=True, kw_only=True):
    """The stream that a connector feeds, and how it does so."""

    c_name: str
    """name of the image or stream"""
    host: str = "127.0.0.1"
    """host of the master's data port"""
    port: int = 8090
    token: str = ""
    tls: str | None = None
    """folder of certificates for mutual TLS; plain TCP when left out"""
    delivery: Literal["at-least-once", "at-most-once"] = "at-least-once"
    overflow: Literal["full", "absent", "never"] = "full"
    """when messages go to the master's queue: no PE has had credit for `credit_timeout`, there is no PE, or never"""
    credit_timeout: float = 0.5
    """seconds without credit after which messages overflow"""
    batch_bytes: int = 256 * 1024
    batch_messages: int = 8192
    linger: float = 0.0
    """seconds for which a message may wait for others to share its frame"""
    shared_memory: bool = True
    """whether PEs of this host may read batches from shared memory instead of the socket"""
    max_in_flight_bytes: int = 256 * 2**20
    """bytes that may be unacknowledged in all; at least one message always may"""

    def __post_init__(self) -> None:
        """Raise ConfigError for at-most-once through the queue, which sends a message again when its PE is lost."""
        if self.delivery == "at-most-once" and self.overflow != "never":
            raise ConfigError("at-most-once cannot go through the queue, which sends again; set overflow='never'")
