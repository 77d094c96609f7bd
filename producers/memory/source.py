"""A pipe within the harness's own process as a source: for tests of the harness itself, without any server."""

from msgspec import Struct

from bench.model.cell import Cell
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint
from bench.system.pipe import Pipe


class MemorySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """No settings."""


class MemorySource:
    """A pipe for each cell."""

    def __init__(self, settings: MemorySettings) -> None:
        self._settings = settings
        self._name = ""

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:  # noqa: ARG002  every cell and entropy can pass
        """Return None: every cell and entropy can pass."""
        return None

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:
        """Make an empty pipe and return its endpoint."""
        self._name = f"{env.data}/{cell.name}"
        Pipe.forget(self._name)
        return Endpoint("memory", self._name)

    def reset(self) -> None:
        """Do nothing: a trial leaves nothing behind."""

    def close(self) -> None:
        """Delete the pipe."""
        Pipe.forget(self._name)
