"""A pipe within the harness's own process as a source: for trying the harness itself, without any server."""

from msgspec import Struct

from bench.model.cell import Cell
from bench.plugins.protocols import Endpoint, RunEnvironment
from bench.system.pipe import Pipe


class MemorySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """There is nothing to set."""


class MemorySource:
    """A pipe of its own for each cell."""

    def __init__(self, settings: MemorySettings) -> None:
        self._settings = settings
        self._name = ""

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:  # noqa: ARG002  every cell and entropy can pass
        return None

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:
        self._name = f"{env.data}/{cell.name}"
        Pipe.forget(self._name)
        return Endpoint("memory", self._name)

    def reset(self) -> None:
        """Nothing is left behind."""

    def close(self) -> None:
        Pipe.forget(self._name)
