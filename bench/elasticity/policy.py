"""The question and the answer of a scaling policy, and the declaration that its entry point gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from bench.elasticity.dataflow import Dataflow
from bench.elasticity.samples import Parallelism, Sample

Settings = TypeVar("Settings", bound=Struct)


class Plan(Struct, frozen=True):
    """A decision: the instances to run from now on, and why in a sentence."""

    parallelism: Parallelism
    reason: str


class Policy(Protocol):
    """A rule for the instances of a job. It holds no state: the same samples give the same plan."""

    def decide(self, samples: Sequence[Sample], running: Parallelism) -> Plan:
        """Return the instances to run next; those that run where nothing should change.

        Args:
            samples: All intervals since the job started, in order; the last one has just ended.
            running: The instances of each operator now.
        """


@dataclass(frozen=True, kw_only=True)
class PolicyPlugin(Generic[Settings]):
    """A scaling policy, as its entry point declares it."""

    settings: type[Settings]
    make: Callable[[Settings, Dataflow], Policy]
    """makes the policy of a job; raises UsageError for settings that contradict each other"""
