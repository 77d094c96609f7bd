"""The cases of the kit: six systems and one with long batches, systems with random ceilings, and adversaries.

Specification: the project's max-rate-search reference, sections 8 and 9.1.
"""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from bench.config.scenario import Timing
from bench.simulation.capacity import Traits
from bench.simulation.driver import Case
from bench.simulation.faults import Faults
from bench.units import Seconds

CEILING = 20_000.0
GENERATOR_READ = 0.98
"""What a calibration reads of the generator's true ceiling."""

SCENARIOS = (
    Case("S1 continuous", Traits(CEILING)),
    Case("S2 fast", Traits(10 * CEILING, latency=0.02)),
    Case("S3 batch 1 s", Traits(CEILING, batch_interval=1.0)),
    Case("S3b batch 5 s", Traits(CEILING, batch_interval=5.0)),
    Case("S4 heavy", Traits(8.0, batch_interval=1.0), lowest=0.5, highest=1000.0),
    Case("S5 collapse", Traits(CEILING, collapse_loss=0.3)),
    Case("S6 noisy", Traits(CEILING, noise=0.10, pause_gap=10.0)),
)
NEIGHBOURS = tuple(
    replace(case, name=f"{case.name.split()[0]} hint", hint=1.1)
    for case in SCENARIOS
    if case.name[:2] in ("S1", "S2", "S3", "S4")
)


class Family(Struct, frozen=True):
    """Systems alike but for their ceiling, which is log-uniform between `lowest` and `highest` messages/s."""

    like: Case
    lowest: float
    highest: float

    @property
    def name(self) -> str:
        return self.like.name

    def case(self, seed: int) -> Case:
        """One of them."""
        low, high = np.log([self.lowest, self.highest])
        ceiling = float(np.exp(np.random.default_rng([seed, 1]).uniform(low, high)))
        return replace(self.like, traits=replace(self.like.traits, ceiling=ceiling))


FAMILIES = (
    Family(Case("friendly", Traits(1.0, latency=0.002, noise=0.01, pause_gap=0.0, warm_up=0.0)), 5e3, 5e5),
    Family(Case("realistic", Traits(1.0, latency=0.005)), 5e3, 5e5),
    Family(Case("micro-batch 1 s", Traits(1.0, batch_interval=1.0)), 5e3, 5e5),
    Family(Case("slow, batch 1 s", Traits(1.0, batch_interval=1.0), 0.1, 1e4), 0.5, 2000.0),
    Family(Case("slow, 10 ms", Traits(1.0), 0.1, 1e4), 0.5, 2000.0),
    Family(Case("any", Traits(1.0), 0.1, 1e6), 0.5, 5e5),
)


def _hasty(name: str, **traits: float) -> Family:
    """Systems that are given half a minute each, as in scenarios/quick.yaml."""
    timing = Timing(settle=Seconds(0.5), window=Seconds(3))
    case = Case(name, Traits(1.0, warm_up=3.0, **traits), 0.1, 1e6, budget=30.0, precision=0.25, timing=timing)
    return Family(case, 50.0, 2e5)


HASTY = (_hasty("in 30 s"), _hasty("in 30 s, batch 1 s", batch_interval=1.0))
"""Their intervals are wide, and must be honest."""


class Adversary(Struct, frozen=True):
    """A case that tries to fool a search, and what a right answer says.

    `statuses`: any of these; `reason` if one is asked for; `least` and `most`: where the estimate may lie, as a share of the truth.
    """

    case: Case
    statuses: tuple[str, ...] = ("measured",)
    reason: str | None = None
    least: float = 0.85
    most: float = 1.15
    also: float | None = None
    """a second ceiling that the system really has"""


def _limited(share: float, *, known: bool) -> Case:
    """A system whose generator reaches that share of its ceiling."""
    traits = Traits(CEILING, generator=share * Traits(CEILING).truth)
    name = f"generator at {share:.0%}" + ("" if known else ", not calibrated")
    return Case(name, traits, generator_known=GENERATOR_READ if known else None)


def _faulty(name: str, faults: Faults) -> Case:
    return Case(name, Traits(CEILING), faults=faults)


AT_LEAST = ("lower-bound",)
ADVERSARIES = (
    *(Adversary(_limited(0.41, known=known), AT_LEAST, "generator", 0.36, 0.41) for known in (True, False)),
    *(Adversary(_limited(0.82, known=known), AT_LEAST, "generator", 0.74, 0.82) for known in (True, False)),
    *(Adversary(_limited(1.28, known=known)) for known in (True, False)),
    Adversary(_faulty("dies once", Faults(dies_at=200.0))),
    Adversary(_faulty("dies under load", Faults(dies_above=0.6 * CEILING)), ("failed",)),
    Adversary(_faulty("rejects everything", Faults(rejects=True)), ("upper-bound",)),
    Adversary(_faulty("counter stalls", Faults(stalls_at=180.0))),
    Adversary(_faulty("counter stalls early", Faults(stalls_at=20.0))),
    Adversary(_faulty("counter resets", Faults(resets_at=200.0))),
    Adversary(_faulty("counter resets again and again", Faults(resets_every=4.0)), ("failed",)),
    Adversary(_faulty("messages repeat once", Faults(repeats_at=200.0))),
    Adversary(_faulty("messages repeat always", Faults(repeats_always=True)), ("upper-bound",)),
    Adversary(_faulty("clock jumps", Faults(jumps_at=200.0))),
    Adversary(
        Case("capacity steps down", Traits(CEILING, step_at=220.0, step_factor=0.6)), ("measured", "unstable"), also=0.6
    ),
    Adversary(
        Case("two modes", Traits(CEILING, mode_dwell=150.0, mode_factor=0.6)), ("measured", "unstable"), also=0.6
    ),
    Adversary(Case("floor fails", Traits(0.3), lowest=0.5, highest=1000.0), ("upper-bound",), "floor"),
    Adversary(Case("budget is short", Traits(CEILING), budget=300.0), ("lower-bound", "measured")),
)
