"""Whole maps of simulated cells, each measured twice: maps of equal cells must show no change, and order what they can.

The capacities lie on a surface 1/rate = a + b x size + c x cost with a scatter.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.comparison import compare
from bench.analysis.winners import TIE, decide_points
from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.simulation.capacity import Traits
from bench.simulation.driver import StrategyFactory, contains
from bench.simulation.map_measurement import measure_each, measure_in_passes

SIZES = (100, 1_000, 10_000, 100_000)
COSTS = (0.0, 0.001, 0.01)
NOISE_SD = 0.5
"""Standard deviation of ln(noise) between the cells of a system: a map must not believe that all are equal."""
MAX_NOISE = 0.2
SCATTER = 0.10
"""Standard deviation of ln(capacity) around the surface."""
AGAIN = "again"
"""Framework that the second measurement of a system stands for."""
NEAR = 1.3
"""Cells of one map whose capacities differ by less than this factor must be ordered right or called open."""


class MapCase(Struct, frozen=True):
    """Maps of two systems over sizes and costs, with a budget for each cell in seconds.

    The cells of a system that needs a warm-up are measured in one session.
    """

    name: str
    budget: float
    engines: tuple[tuple[str, Traits], ...]
    passes: bool = False
    """whether the budgets of all cells are one total, which goes where it changes most of what the map says"""


class MapOutcome(Struct, frozen=True):
    """The outcome of one map that was measured twice."""

    changes: int
    """cells whose rate differs between the two, by bench.analysis.comparison"""
    cells: int
    covered: int
    """searches, of 2 x `cells`, whose interval contains the truth"""
    pairs: int
    """pairs of cells of the first measurement that differ by less than NEAR"""
    misordered: int
    wrong_winners: int = 0
    """measurements, of two, with a leader that is not the fastest, or a tie of systems that differ by more"""
    equals: int = 0
    """systems, each taken for two equal ones by its two measurements"""
    equal_leads: int = 0
    """of these, maps with a leader"""


_CALM = Traits(1.0, warm_up=0.0)
_PULL = replace(_CALM, batch_interval=1.0, reader="pull", fixed_cost=0.2)
_JIT_S = 120.0
MAPS = (
    MapCase("map, 75 s a cell", 75.0, (("continuous", _CALM), ("pull", _PULL))),
    MapCase("map, 25 s a cell in passes", 25.0, (("continuous", _CALM), ("pull", _PULL)), passes=True),
    MapCase(
        f"map, 25 s a cell, JIT {_JIT_S:g} s",
        25.0,
        (("continuous", replace(_CALM, warm_up=_JIT_S)), ("pull", replace(_PULL, warm_up=_JIT_S))),
    ),
)


def run_map(kind: MapCase, seed: int, strategy: StrategyFactory) -> MapOutcome:
    """Measure all cells of a map twice.

    Args:
        kind: The systems and the budget.
        seed: Seed of the capacities and of the noise.
        strategy: Factory of the search strategy.
    """
    systems = draw_systems(kind, seed)
    truths = {cell: traits.truth for cell, traits in systems.items()}
    first, second = (list(_measure(kind, systems, 2 * seed + part, strategy).values()) for part in range(2))
    covered = sum(contains(result, truths[result.cell]) for result in (*first, *second))
    changed = sum(each.word in ("faster", "slower") for each in compare(first, second))
    near = [(a, b) for a, b in combinations(first, 2) if 1 / NEAR < truths[a.cell] / truths[b.cell] < NEAR]
    wrong = sum(_is_misordered(a, b, truths[b.cell] / truths[a.cell]) for a, b in near)
    names = sorted({cell.framework for cell in systems})
    return MapOutcome(
        changed, len(systems), covered, len(near), wrong,
        wrong_winners=sum(_has_wrong_winner(results, truths) for results in (first, second)),
        equals=len(names),
        equal_leads=sum(_leads_itself(first, second, name) for name in names),
    )  # fmt: skip


def _measure(kind: MapCase, systems: Mapping[Cell, Traits], seed: int, strategy: StrategyFactory) -> dict[Cell, Result]:
    if kind.passes:
        return measure_in_passes(systems, kind.budget * len(systems), seed, strategy)
    return measure_each(systems, kind.budget, seed, strategy)


def draw_systems(kind: MapCase, seed: int) -> dict[Cell, Traits]:
    """Return the cells of a map with their systems, in messages/s."""
    random, systems = np.random.default_rng([seed, 4]), {}
    for framework, traits in kind.engines:
        base = float(np.exp(random.uniform(*np.log([5e3, 1e5]))))
        level = float(np.exp(random.uniform(*np.log([0.3, 2.0]))))
        bandwidth, cores = random.uniform(50e6, 300e6), random.uniform(1.0, 4.0)
        for size in SIZES:
            for cost in COSTS:
                seconds = 1 / base + size / bandwidth + cost / cores
                capacity = float(np.exp(random.normal(0.0, SCATTER))) / seconds
                noise = traits.noise * level * float(np.exp(random.normal(0.0, NOISE_SD)))
                systems[Cell(framework, "simulated", size, cost)] = replace(
                    traits, mean_capacity=capacity, noise=min(noise, MAX_NOISE)
                )
    return systems


def _has_wrong_winner(results: Sequence[Result], truths: Mapping[Cell, float]) -> bool:
    """Return True if any point of a map has a leader that is not the fastest, or a tie of systems that differ by more.

    Args:
        results: Of all cells of the map.
        truths: The true rate of each cell in messages/s.
    """
    for decision in decide_points(results):
        here = [cell for cell in truths if (cell.message_bytes, cell.cpu_seconds) == decision.point]
        at = {cell.system: truths[cell] for cell in here}
        best, *others = sorted(at.values(), reverse=True)
        if decision.kind == "leads" and at[decision.leader or ""] < best:
            return True
        if decision.kind == "tie" and best > (1 + TIE) * others[0]:
            return True
    return False


def _leads_itself(first: Sequence[Result], second: Sequence[Result], framework: str) -> bool:
    """Return True if a system leads at any point of a map in which its other measurement stands for another system."""
    own = [result for result in first if result.framework == framework]
    other = [
        replace(result, framework=AGAIN, system=f"{AGAIN}/{result.source}")
        for result in second
        if result.framework == framework
    ]
    return any(decision.kind == "leads" for decision in decide_points([*own, *other]))


def _is_misordered(a: Result, b: Result, ratio: float) -> bool:
    """Return True if two results are called different in the wrong order.

    Args:
        a: The first result.
        b: The second one, of another cell.
        ratio: The true capacity of `b` divided by that of `a`.
    """
    moved = replace(b, framework=a.framework, source=a.source, message_bytes=a.message_bytes, cpu_seconds=a.cpu_seconds)
    (compared,) = compare([a], [moved])
    return compared.word == ("slower" if ratio > 1 else "faster")
