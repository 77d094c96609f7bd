"""The simulated systems of a validation: scenarios of known capacity, families of random capacity, and adversaries.

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

CAPACITY = 20_000.0
CALIBRATED_SHARE = 0.98
"""The calibrated ceiling of the generator, as a share of the true one."""

SCENARIOS = (
    Case("S1 continuous", Traits(CAPACITY)),
    Case("S2 fast", Traits(10 * CAPACITY, latency=0.02)),
    Case("S3 batch 1 s", Traits(CAPACITY, batch_interval=1.0)),
    Case("S3b batch 5 s", Traits(CAPACITY, batch_interval=5.0)),
    Case("S4 heavy", Traits(8.0, batch_interval=1.0), lowest=0.5, highest=1000.0),
    Case("S5 collapse", Traits(CAPACITY, collapse_loss=0.3)),
    Case("S6 noisy", Traits(CAPACITY, noise=0.10, pause_gap=10.0)),
)
NEIGHBOURS = tuple(
    replace(case, name=f"{case.name.split()[0]} hint", hint=1.1)
    for case in SCENARIOS
    if case.name[:2] in ("S1", "S2", "S3", "S4")
)


class Family(Struct, frozen=True):
    """Systems with the same traits but for a random capacity, log-uniform between `lowest` and `highest` messages/s."""

    template: Case
    lowest: float
    highest: float

    @property
    def name(self) -> str:
        """The name of each of its cases."""
        return self.template.name

    def draw_case(self, seed: int) -> Case:
        """Return the case with the capacity that `seed` determines."""
        low, high = np.log([self.lowest, self.highest])
        capacity = float(np.exp(np.random.default_rng([seed, 1]).uniform(low, high)))
        return replace(self.template, traits=replace(self.template.traits, mean_capacity=capacity))


FAMILIES = (
    Family(Case("friendly", Traits(1.0, latency=0.002, noise=0.01, pause_gap=0.0, warm_up=0.0)), 5e3, 5e5),
    Family(Case("realistic", Traits(1.0, latency=0.005)), 5e3, 5e5),
    Family(Case("micro-batch 1 s", Traits(1.0, batch_interval=1.0)), 5e3, 5e5),
    Family(Case("slow, batch 1 s", Traits(1.0, batch_interval=1.0), 0.1, 1e4), 0.5, 2000.0),
    Family(Case("slow, 10 ms", Traits(1.0), 0.1, 1e4), 0.5, 2000.0),
    Family(Case("any", Traits(1.0), 0.1, 1e6), 0.5, 5e5),
)


def _low_budget(name: str, batch_interval: float = 0.0) -> Family:
    """Return a family with a budget of half a minute for each search, as in scenarios/quick.yaml."""
    timing = Timing(settle=Seconds(0.5), window=Seconds(3))
    case = Case(
        name,
        Traits(1.0, warm_up=3.0, batch_interval=batch_interval),
        0.1,
        1e6,
        budget=30.0,
        precision=0.25,
        timing=timing,
    )
    return Family(case, 50.0, 2e5)


LOW_BUDGET = (_low_budget("in 30 s"), _low_budget("in 30 s, batch 1 s", batch_interval=1.0))
"""Their intervals are wide, but must contain the truth as often as the others."""


class Adversary(Struct, frozen=True):
    """A case with a fault or a limit that may mislead a search, and the correct results.

    A result is correct if it has one of `statuses`, the `reason` unless None, and an estimate from `min_estimate` to
    `max_estimate`, as shares of the truth.
    """

    case: Case
    statuses: tuple[str, ...] = ("measured",)
    reason: str | None = None
    min_estimate: float = 0.85
    max_estimate: float = 1.15
    second_capacity: float | None = None
    """a second true capacity of the system, as a share of the truth"""


def _limit_generator(share: float, *, known: bool) -> Case:
    """Return a system whose generator reaches `share` of its capacity; `known`: it is calibrated."""
    traits = Traits(CAPACITY, generator=share * Traits(CAPACITY).truth)
    name = f"generator at {share:.0%}" + ("" if known else ", not calibrated")
    return Case(name, traits, generator_known=CALIBRATED_SHARE if known else None)


def _with_faults(name: str, faults: Faults) -> Case:
    return Case(name, Traits(CAPACITY), faults=faults)


AT_LEAST = ("lower-bound",)
ADVERSARIES = (
    *(Adversary(_limit_generator(0.41, known=known), AT_LEAST, "generator", 0.36, 0.41) for known in (True, False)),
    *(Adversary(_limit_generator(0.82, known=known), AT_LEAST, "generator", 0.74, 0.82) for known in (True, False)),
    *(Adversary(_limit_generator(1.28, known=known)) for known in (True, False)),
    Adversary(_with_faults("dies once", Faults(dies_at=200.0))),
    Adversary(_with_faults("dies under load", Faults(dies_above=0.6 * CAPACITY)), ("failed",)),
    Adversary(_with_faults("rejects everything", Faults(rejects=True)), ("upper-bound",)),
    Adversary(_with_faults("counter stalls", Faults(stalls_at=180.0))),
    Adversary(_with_faults("counter stalls early", Faults(stalls_at=20.0))),
    Adversary(_with_faults("counter resets", Faults(resets_at=200.0))),
    Adversary(_with_faults("counter resets again and again", Faults(resets_every=4.0)), ("failed",)),
    Adversary(_with_faults("messages repeat once", Faults(repeats_at=200.0))),
    Adversary(_with_faults("messages repeat always", Faults(repeats_always=True)), ("upper-bound",)),
    Adversary(_with_faults("clock jumps", Faults(jumps_at=200.0))),
    Adversary(
        Case("capacity steps down", Traits(CAPACITY, step_at=220.0, step_factor=0.6)),
        ("measured", "unstable"),
        second_capacity=0.6,
    ),
    Adversary(
        Case("two modes", Traits(CAPACITY, mode_dwell=150.0, mode_factor=0.6)),
        ("measured", "unstable"),
        second_capacity=0.6,
    ),
    Adversary(Case("lowest rate fails", Traits(0.3), lowest=0.5, highest=1000.0), ("upper-bound",), "floor"),
    Adversary(Case("budget is short", Traits(CAPACITY), budget=300.0), ("lower-bound", "measured")),
)
