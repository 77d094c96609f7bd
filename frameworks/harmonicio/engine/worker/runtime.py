"""The protocol of a runtime, in which PEs run, and its types."""

from typing import Any, Protocol

from msgspec import Struct

MAX_PROCESSES = 4096
"""Of a PE in a container, or of all PEs with a user of their own; threads included."""


class PeSpec(Struct, frozen=True, kw_only=True):
    """A PE that is to be started."""

    c_name: str
    image: str
    port: int
    """on the worker's host"""
    environment: dict[str, str]
    """as of environment.pe_environment"""
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
    """CPU time used so far"""


class Runtime(Protocol):
    """Starts and stops PEs. Calls may block: a worker makes them in a thread."""

    def start(self, spec: PeSpec) -> str:
        """Start a PE and return its id of 12 characters; raises RefusedError or UnreachableError."""

    def stop(self, short_id: str) -> None:
        """Let a PE drain and end; raises RefusedError when there is none of that id."""

    def containers(self) -> list[Container]:
        """Return all PEs that this runtime started and has not removed."""

    def any_ended(self) -> bool:
        """Return whether a PE has ended, where that is known without a delay."""

    def remove_ended(self) -> list[Container]:
        """Remove the PEs that have ended, and return them."""

    def close(self, timeout_s: float) -> None:
        """End all PEs: let them drain, and kill them after the timeout."""
