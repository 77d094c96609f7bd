"""The policy `fixed`: the number of instances that a person chose, whatever the load is."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from bench.elasticity.dataflow import Dataflow
from bench.elasticity.policy import Plan, PolicyPlugin
from bench.elasticity.samples import Parallelism, Sample
from bench.errors import UsageError


class FixedSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of `fixed`."""

    parallelism: Mapping[str, Annotated[int, Meta(ge=1)]] = {}
    """Instances by operator; an operator that is left out keeps those that it has"""


class Fixed:
    """The policy for one dataflow."""

    def __init__(self, settings: FixedSettings, dataflow: Dataflow) -> None:
        if unknown := sorted(set(settings.parallelism) - set(dataflow.operators)):
            raise UsageError(f"fixed: no operator {', '.join(unknown)}; there are: {', '.join(dataflow.operators)}")
        self._chosen = settings.parallelism

    def decide(self, samples: Sequence[Sample], running: Parallelism) -> Plan:  # noqa: ARG002  whatever was measured
        """Return the instances that were chosen."""
        return Plan({**running, **self._chosen}, "the number of instances is fixed")


plugin = PolicyPlugin(settings=FixedSettings, make=Fixed)
