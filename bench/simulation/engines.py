"""Kinds of systems whose capacity is drawn for each seed, each with budgets from 20 s to 10 minutes."""

from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from bench.config.scenario import Objectives
from bench.model.cell import Cell
from bench.simulation.capacity import Traits
from bench.simulation.driver import Case

BUDGETS = (20.0, 25.0, 30.0, 75.0, 600.0)
LONG_BUDGET_S = 300.0
"""From this budget on a search must not exceed it by more than one trial."""
HINT_SD = 0.35
"""Standard deviation of ln(a neighbour's estimate); every second seed has one."""
CALIBRATED_SHARE = 0.98
"""The calibrated limit of the generator, as a share of the true one."""
LARGE_BATCH_BUDGETS = (75.0, 600.0)
"""Budgets in which a window of six batches of 5 s fits."""


class SimulatedEngine(Struct, frozen=True):
    """Systems with the same traits but for a random capacity, log-uniform between `lowest` and `highest` messages/s."""

    name: str
    traits: Traits
    progress: Literal["continuous", "batches", "counters", ""] = ""
    """which widths of the interval are required; "counters": batches that only the counter shows; "" for none"""
    budgets: tuple[float, ...] = BUDGETS
    lowest: float = 50.0
    highest: float = 2e5
    generator: float = float("inf")
    """the generator's limit as a share of the truth; it is calibrated"""
    cold: bool = False
    bound: float | None = None
    """the hard bound as a share of the truth, where the cost of the messages is known to be the limit"""
    message_bytes: int = 100
    objectives: Objectives = Objectives()


class EngineCase(Struct, frozen=True):
    """An engine with one of its budgets."""

    engine: SimulatedEngine
    budget: float

    @property
    def name(self) -> str:
        """The name of each of its cases."""
        return f"{self.engine.name}, {self.budget:g} s"

    def draw_case(self, seed: int) -> Case:
        """Return the case with the capacity and the hint that `seed` determines; even seeds have no hint."""
        engine, random = self.engine, np.random.default_rng([seed, 1])
        capacity = float(np.exp(random.uniform(*np.log([engine.lowest, engine.highest]))))
        hint = float(np.exp(random.normal(0.0, HINT_SD))) if seed % 2 else None
        traits = replace(engine.traits, mean_capacity=capacity)
        limited = engine.generator < float("inf")
        if limited:
            traits = replace(traits, generator=engine.generator * traits.truth)
        return Case(
            self.name, traits, 0.1, 1e6, self.budget,
            hint=hint, bound=engine.bound, cold=engine.cold, generator_known=CALIBRATED_SHARE if limited else None,
            cell=Cell("simulated", "fluid", engine.message_bytes, 0.0), objectives=engine.objectives,
        )  # fmt: skip


_CALM = Traits(1.0, warm_up=0.0)
_QUICK = replace(_CALM, quick_messages=1500.0, quick_factor=1.4)
_SECOND = replace(_CALM, batch_interval=1.0)
_PULL = replace(_SECOND, reader="pull", fixed_cost=0.4)
_RECEIVER = replace(_SECOND, reader="receiver", fixed_cost=0.2)
_GROW = Objectives(batches="grow")


def _beside_other_work(
    traits: Traits, name: str, share: float, effect: float, bound: float | None = None
) -> SimulatedEngine:
    name = f"{name}, {share:.0%} other work, effect {effect:.0%}"
    return SimulatedEngine(name, replace(traits, other_work=share, other_effect=effect), budgets=(300.0,), bound=bound)


def _of_five_seconds(name: str, traits: Traits) -> SimulatedEngine:
    fixed = 5 * traits.fixed_cost
    return SimulatedEngine(name, replace(traits, batch_interval=5.0, fixed_cost=fixed), budgets=LARGE_BATCH_BUDGETS)


ENGINES = (
    SimulatedEngine("continuous", _CALM, "continuous"),
    SimulatedEngine("fast", replace(_CALM, latency=0.02), "continuous", highest=1e6, lowest=1e4),
    SimulatedEngine("friendly", replace(_CALM, latency=0.002, noise=0.01, pause_gap=0.0), "continuous"),
    SimulatedEngine("collapse", replace(_CALM, collapse_loss=0.3), "continuous"),
    *(
        SimulatedEngine(f"{name}noisy, pauses", replace(traits, noise=0.10, pause_gap=10.0))
        for name, traits in (("", _CALM), ("pull 1 s, ", _PULL), ("receiver 1 s, ", _RECEIVER))
    ),
    SimulatedEngine("1 MB, quick at first", _QUICK, lowest=250.0, highest=1000.0, message_bytes=1_000_000),
    SimulatedEngine("shared CPU", replace(_CALM, shared=0.3), "continuous"),
    *(
        _beside_other_work(traits, name, share, effect)
        for traits, name, share in ((_CALM, "continuous", 0.2), (_PULL, "pull 1 s", 0.05))
        for effect in (0.0, 0.67)
    ),
    _beside_other_work(_CALM, "continuous, near its bound", 0.2, 0.0, bound=1.05),
    SimulatedEngine("slow drift", replace(_CALM, drift=0.03), "continuous"),
    SimulatedEngine("Poisson, slow", replace(_CALM, poisson=True), lowest=10.0, highest=100.0, bound=2.0),
    SimulatedEngine("batch 1 s, counters", _SECOND, "counters"),
    SimulatedEngine("pull 1 s", _PULL, "batches"),
    SimulatedEngine("receiver 1 s", _RECEIVER, "batches"),
    SimulatedEngine("pull 1 s, fixed cost of 5 %", replace(_PULL, fixed_cost=0.05), budgets=(75.0,)),
    *(
        SimulatedEngine(f"{name}, batches may grow", traits, budgets=(75.0, 600.0), objectives=_GROW)
        for name, traits in (
            ("pull 1 s", _PULL),
            ("receiver 1 s", _RECEIVER),
            ("receiver 1 s, intake at 40 %", replace(_RECEIVER, intake=0.4)),
        )
    ),
    SimulatedEngine("pull 1 s, counters", replace(_PULL, reports_batches=False)),
    SimulatedEngine("receiver 1 s, counters", replace(_RECEIVER, reports_batches=False)),
    SimulatedEngine("receiver 1 s, intake at 40 %", replace(_RECEIVER, intake=0.4)),
    SimulatedEngine("receiver 1 s, intake at 70 %", replace(_RECEIVER, intake=0.7)),
    _of_five_seconds("batch 5 s, counters", _SECOND),
    _of_five_seconds("pull 5 s", _PULL),
    _of_five_seconds("receiver 5 s", _RECEIVER),
    *(SimulatedEngine(f"JIT {age:g} s", replace(_CALM, warm_up=age), cold=True) for age in (20.0, 60.0, 120.0)),
    SimulatedEngine("JIT 60 s, pull 1 s", replace(_PULL, warm_up=60.0), cold=True),
    *(
        SimulatedEngine(f"generator at {share:.0%} of the truth", _CALM, generator=share)
        for share in (0.95, 1.0, 1.05, 1.15)
    ),
    SimulatedEngine("generator at 105%, pull 1 s", _PULL, generator=1.05),
    SimulatedEngine("very slow", _CALM, budgets=(600.0,), lowest=0.5, highest=50.0),
    SimulatedEngine("very slow, batch 1 s", _SECOND, budgets=(600.0,), lowest=0.5, highest=50.0),
)
ENGINE_CASES = tuple(EngineCase(engine, budget) for engine in ENGINES for budget in engine.budgets)
