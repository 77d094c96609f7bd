"""What a connector is told."""

from typing import Literal

from msgspec import Struct

from frameworks.harmonicio.engine.errors import ConfigError


class Options(Struct, frozen=True, kw_only=True):
    """The stream that a connector feeds, and how."""

    c_name: str
    """of the image or stream"""
    host: str = "127.0.0.1"
    """of the master's data port"""
    port: int = 8090
    token: str = ""
    tls: str | None = None
    """folder of the certificates (trust); plain TCP when left out"""
    delivery: Literal["at-least-once", "at-most-once"] = "at-least-once"
    overflow: Literal["full", "absent", "never"] = "full"
    """when messages go to the master's queue: no PE has had credit for `patience`, there is no PE, or not at all"""
    patience: float = 0.5
    batch_bytes: int = 256 * 1024
    batch_messages: int = 8192
    linger: float = 0.0
    """seconds for which a message may wait for others to share its frame"""
    shared_memory: bool = True
    """whether PEs of this host may read batches from shared memory instead of the socket"""
    held_bytes: int = 256 * 2**20
    """that may be unacknowledged in all; at least one message always"""

    def __post_init__(self) -> None:
        """Refuse what would not be as it is called: the queue brings a message again when the PE that had it is lost."""
        if self.delivery == "at-most-once" and self.overflow != "never":
            raise ConfigError("at-most-once cannot go through the queue, which sends again; set overflow='never'")
