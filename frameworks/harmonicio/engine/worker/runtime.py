"""The face of what PEs run in, and the words it uses."""

from typing import Any, Protocol

from msgspec import Struct


class Start(Struct, frozen=True, kw_only=True):
    """A PE that is to run."""

    c_name: str
    image: str
    port: int
    """on the worker's host"""
    environment: dict[str, str]
    """what every PE is told (reference: the union of all eras)"""
    cpu_share: float | None = None
    memory_bytes: int | None = None
    settings: dict[str, Any] = {}


class Container(Struct, frozen=True, kw_only=True):
    """A PE that runs, or has ended and was not removed yet."""

    short_id: str
    image: str
    c_name: str
    port: int
    status: str
    """running, or "exited (code)" """
    cpu_share: float | None = None
    cpu_seconds: float = 0.0
    """that it has used so far"""


class Runtime(Protocol):
    """Where PEs run. Calls may take a while: a worker makes them in a thread."""

    def start(self, start: Start) -> str:
        """Start a PE; its id of 12 characters. Raises Refused or Unreachable."""

    def stop(self, short_id: str) -> None:
        """Have a PE drain and end; raises Refused when there is none of that id."""

    def containers(self) -> list[Container]:
        """All that this runtime started."""

    def any_ended(self) -> bool:
        """Whether one has ended, as far as that can be said at once."""

    def remove_ended(self) -> list[Container]:
        """Forget those that have ended, and return them."""

    def close(self, patience: float) -> None:
        """End all of them: politely, and after so many seconds by force."""
