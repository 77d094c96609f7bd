"""Mistakes made on purpose, each of which must break a gate: they show that the gates bite."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.stability import Drift, drift_of
from bench.model.measurement import Measurement
from bench.search.parameters import SearchParameters
from bench.search.problem import SearchProblem, Strategy
from bench.search.two_counter import TwoCounter
from bench.simulation.acceptance import Criterion, Row, neighbour_gates, row_of, saving_gate, scenario_gates
from bench.simulation.cases import NEIGHBOURS, SCENARIOS
from bench.simulation.driver import Case, Maker, outcome_of

BACKLOG_LIMIT, LAST_ROWS = 1000, 30


class Mutation(Struct, frozen=True):
    """A strategy or a case with a mistake, and the cases in which it must show."""

    name: str
    maker: Maker
    cases: tuple[Case, ...]
    mistaken: Callable[[Case], Case] = lambda case: case


def broken_gates(mutation: Mutation, seeds: range) -> list[Criterion]:
    """The gates that the mistake breaks; there must be one."""
    gates: list[Criterion] = []
    rows: dict[bool, list[Row]] = {False: [], True: []}
    for case in mutation.cases:
        row = row_of([outcome_of(mutation.mistaken(case), seed, mutation.maker) for seed in seeds])
        rows[case.hint is not None].append(row)
        gates += scenario_gates(row) if case.hint is None else neighbour_gates(row)
    if rows[True] and rows[False]:
        gates.append(saving_gate(rows[True], rows[False]))
    return [gate for gate in gates if not gate.passed]


def _flipped(question: SearchProblem) -> Strategy:
    return TwoCounter(question, read=_read_flipped)


def _read_flipped(seen: Measurement) -> Drift:
    drift = drift_of(seen)
    return replace(drift, overloaded=not drift.overloaded, loss=0.3 if drift.loss == 0 else 0.0)


def _limited(question: SearchProblem) -> Strategy:
    return TwoCounter(question, read=_read_with_limit)


def _read_with_limit(seen: Measurement) -> Drift:
    """Overloaded when more than so many messages are in flight, as a well-known benchmark has it."""
    rows = zip(seen.series.offered, seen.series.processed, strict=True)
    backlog = min([offered - processed for offered, processed in rows if offered <= seen.offered][-LAST_ROWS:])
    drift = drift_of(seen)
    over = backlog > BACKLOG_LIMIT
    return replace(drift, overloaded=over, loss=max(0.1, drift.loss) if over else 0.0)


def _cold(question: SearchProblem) -> Strategy:
    return TwoCounter(question, SearchParameters(skip_warm_up=True))


_SIMPLE, _BATCHED, _COLLAPSING = SCENARIOS[0], SCENARIOS[2], SCENARIOS[5]
MUTATIONS = (
    Mutation("the verdict is flipped", _flipped, (_SIMPLE,)),
    Mutation("the drain is dropped", TwoCounter, (_SIMPLE, _COLLAPSING), lambda case: replace(case, drains=False)),
    Mutation("an absolute backlog limit of 1,000", _limited, (_SIMPLE, _BATCHED)),
    Mutation("the warm-up is skipped", _cold, (_SIMPLE, _BATCHED, NEIGHBOURS[0], NEIGHBOURS[2])),
)
