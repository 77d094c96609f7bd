"""The simulated systems of a validation with a fixed capacity and a long budget: scenarios and adversaries."""

from msgspec import Struct

from bench.simulation.capacity import Traits
from bench.simulation.driver import Case
from bench.simulation.engines import CALIBRATED_SHARE
from bench.simulation.faults import Faults

CAPACITY = 20_000.0

SCENARIOS = (
    Case("S1 continuous", Traits(CAPACITY)),
    Case("S2 fast", Traits(10 * CAPACITY, latency=0.02)),
    Case("S3 batch 1 s", Traits(CAPACITY, batch_interval=1.0)),
    Case("S3b batch 5 s", Traits(CAPACITY, batch_interval=5.0)),
    Case("S4 heavy", Traits(8.0, batch_interval=1.0), lowest=0.5, highest=1000.0),
    Case("S5 collapse", Traits(CAPACITY, collapse_loss=0.3)),
    Case("S6 noisy", Traits(CAPACITY, noise=0.10, pause_gap=10.0)),
)


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
