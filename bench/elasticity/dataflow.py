"""The dataflow graph of a job: its sources, its operators, and whose output each operator reads."""

from collections.abc import Mapping
from graphlib import TopologicalSorter

from msgspec import Struct


class Dataflow(Struct, frozen=True):
    """Sources and operators without a cycle. An operator reads the whole output of everything upstream of it."""

    sources: tuple[str, ...]
    upstream: Mapping[str, tuple[str, ...]]
    """by operator: the sources and operators that it reads"""

    def __post_init__(self) -> None:
        """Raise ValueError if an operator reads nothing, or something that is not there."""
        known = {*self.sources, *self.upstream}
        for operator, names in self.upstream.items():
            if not names or operator in self.sources:
                raise ValueError(f"the operator {operator} reads nothing, or is a source, too")
            if missing := sorted(set(names) - known):
                raise ValueError(f"the operator {operator} reads {', '.join(missing)}, which the dataflow lacks")

    @property
    def operators(self) -> tuple[str, ...]:
        """Return the operators, each after everything that it reads; graphlib's CycleError if there is a cycle."""
        order = TopologicalSorter(self.upstream).static_order()
        return tuple(name for name in order if name in self.upstream)


def chain(source: str, *operators: str) -> Dataflow:
    """Return a dataflow in which each operator reads the one before, and the first one the source."""
    before = (source, *operators)
    return Dataflow((source,), {name: (read,) for name, read in zip(operators, before, strict=False)})
