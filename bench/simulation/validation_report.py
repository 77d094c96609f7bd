"""The whole kit over one strategy, as tasks that can be done in any order, and what their outcomes come to."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from bench.simulation.acceptance import (
    Criterion,
    Row,
    adversary_gates,
    family_gates,
    hasty_gates,
    neighbour_gates,
    row_of,
    saving_gate,
    scenario_gates,
)
from bench.simulation.cases import ADVERSARIES, FAMILIES, HASTY, NEIGHBOURS, SCENARIOS
from bench.simulation.driver import Case, Maker, Outcome, outcome_of
from bench.simulation.mutations import MUTATIONS, broken_gates

Kind = Literal["scenario", "repeat", "neighbour", "family", "hasty", "adversary", "mutation"]
KINDS: tuple[Kind, ...] = ("scenario", "repeat", "neighbour", "family", "hasty", "adversary", "mutation")
FORMAT = 1


class Seeds(Struct, frozen=True):
    """How many runs of each kind of case, and the first seed."""

    scenario: int = 200
    family: int = 200
    adversary: int = 100
    mutation: int = 40
    first: int = 0

    def count(self, kind: Kind) -> int:
        counts = {
            "family": self.family,
            "hasty": self.family,
            "adversary": self.adversary,
            "mutation": self.mutation,
            "repeat": 2,
        }
        return counts.get(kind, self.scenario)


class Task(Struct, frozen=True):
    """Some runs of the `place`-th case of a kind: `count` seeds from `first`. Plain, so that another process can do it."""

    kind: Kind
    place: int
    first: int
    count: int


class Part(Struct, frozen=True):
    """What one case says: a line of the table where it has one, and its gates."""

    kind: Kind
    name: str
    gates: list[Criterion]
    row: Row | None = None
    errors: tuple[float, ...] = ()
    """estimate / truth - 1 of every run that has an estimate"""


class ValidationReport(Struct, frozen=True):
    """What the kit says of a strategy."""

    format: int
    strategy: str
    seeds: Seeds
    parts: list[Part]

    @property
    def gates(self) -> list[Criterion]:
        return [gate for part in self.parts for gate in part.gates]


def names() -> list[str]:
    """Every case by its name, in the order of the table."""
    return [name for kind in KINDS if kind != "repeat" for name in _names_of(kind)]


def tasks(seeds: Seeds, *, only: str = "", at_once: int = 20, mutations: bool = True) -> list[Task]:
    """What there is to do for the cases whose names contain `only`, at most `at_once` runs a task.

    The mutations are those of the two-counter search; a strategy of one's own goes without them.
    """
    found = []
    for kind in KINDS:
        if kind == "mutation" and not mutations:
            continue
        whole = kind in ("repeat", "mutation")
        for place, name in enumerate(_names_of(kind)):
            if only.casefold() not in name.casefold():
                continue
            first, last = seeds.first, seeds.first + seeds.count(kind)
            step = last - first if whole else at_once
            found += [Task(kind, place, start, min(step, last - start)) for start in range(first, last, step)]
    return found


def done(task: Task, maker: Maker) -> "list[Outcome] | list[Criterion]":
    """The outcomes of a task's runs; of a mutation the gates that it broke. The same task gives the same answer."""
    seeds = range(task.first, task.first + task.count)
    if task.kind == "mutation":
        return broken_gates(MUTATIONS[task.place], seeds)
    if task.kind == "repeat":
        return [outcome_of(SCENARIOS[task.place], task.first, maker) for _ in range(2)]
    return [outcome_of(_case(task, seed), seed, maker) for seed in seeds]


def certificate(
    strategy: str, seeds: Seeds, answers: Iterable[tuple[Task, "list[Outcome] | list[Criterion]"]]
) -> ValidationReport:
    """What all answers come to, in the order of the table whatever the order in which they came."""
    by_case: dict[tuple[Kind, int], dict[int, list[Outcome] | list[Criterion]]] = {}
    for task, answer in answers:
        by_case.setdefault((task.kind, task.place), {})[task.first] = answer
    parts = []
    for kind, place in sorted(by_case, key=lambda case: (KINDS.index(case[0]), case[1])):
        pieces = by_case[kind, place]
        parts.append(_part(kind, place, [each for first in sorted(pieces) for each in pieces[first]]))
    return ValidationReport(FORMAT, strategy, seeds, [*parts, *_saving(parts)])


def _case(task: Task, seed: int) -> Case:
    if task.kind in ("family", "hasty"):
        return (FAMILIES if task.kind == "family" else HASTY)[task.place].case(seed)
    if task.kind == "adversary":
        return ADVERSARIES[task.place].case
    return (NEIGHBOURS if task.kind == "neighbour" else SCENARIOS)[task.place]


def _names_of(kind: Kind) -> list[str]:
    if kind == "adversary":
        return [adversary.case.name for adversary in ADVERSARIES]
    named: dict[str, Sequence[object]] = {
        "neighbour": NEIGHBOURS,
        "family": FAMILIES,
        "hasty": HASTY,
        "mutation": MUTATIONS,
    }
    return [str(case.name) for case in named.get(kind, SCENARIOS)]  # type: ignore[attr-defined]  # all have a name


def _part(kind: Kind, place: int, answers: "Sequence[Outcome | Criterion]") -> Part:
    name = _names_of(kind)[place]
    gates = [answer for answer in answers if isinstance(answer, Criterion)]
    outcomes = [answer for answer in answers if isinstance(answer, Outcome)]
    if kind == "mutation":
        return Part(kind, name, [Criterion(name, "gates broken by the mutation", len(gates), 1, least=True)])
    if kind == "repeat":
        return Part(
            kind, name, [Criterion(name, "same seed, another result", sum(o != outcomes[0] for o in outcomes), 0)]
        )
    row = row_of(outcomes)
    return Part(
        kind, name, _gates(kind, place, row, outcomes), row, tuple(o.error for o in outcomes if o.error is not None)
    )


def _gates(kind: Kind, place: int, row: Row, outcomes: Sequence[Outcome]) -> list[Criterion]:
    if kind == "adversary":
        return adversary_gates(ADVERSARIES[place], outcomes)
    return {"scenario": scenario_gates, "neighbour": neighbour_gates, "hasty": hasty_gates}.get(kind, family_gates)(row)


def _saving(parts: Sequence[Part]) -> Iterator[Part]:
    """What neighbours saved, where both were run."""
    without = [part.row for part in parts if part.kind == "scenario" and part.row]
    hinted = [part.row for part in parts if part.kind == "neighbour" and part.row]
    both = {row.case[:3] for row in without} & {row.case[:3] for row in hinted}
    pair = [[row for row in rows if row.case[:3] in both] for rows in (hinted, without)]
    if both:
        yield Part("neighbour", "all of these", [saving_gate(*pair)])
