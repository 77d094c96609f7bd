"""Sources of which an address serves one sender only: each of several senders gets an address of its own."""

from typing import Protocol, runtime_checkable

from bench.model.cell import Cell
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint, Source


@runtime_checkable
class SplitSource(Protocol):
    """A source whose endpoint has an address for each sender; readers connect to all of them."""

    def open_split(self, cell: Cell, env: RunEnvironment, senders: int) -> Endpoint:
        """Make what the cell needs, as `Source.open` does; `Endpoint.address` has so many addresses.

        They are separated by commas. Each sender gets the same endpoint, and takes an address that is still free.
        """


def open_endpoint(source: Source, cell: Cell, env: RunEnvironment, senders: int) -> Endpoint:
    """Open a source for so many senders; raises what `Source.open` raises."""
    return source.open_split(cell, env, senders) if isinstance(source, SplitSource) else source.open(cell, env)
