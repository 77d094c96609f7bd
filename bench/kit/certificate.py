"""The whole kit over one strategy: rows and gates as they come, and the table that a person reads."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from bench.kit import mutations
from bench.kit.cases import ADVERSARIES, FAMILIES, NEIGHBOURS, SCENARIOS
from bench.kit.driver import Maker, outcome_of
from bench.kit.gates import Gate, Row, adversary_gates, family_gates, neighbour_gates, row_of, saving_gate, scenario_gates


class Seeds(Struct, frozen=True):
    """How many runs of each kind of case, and the first seed."""

    scenario: int = 200
    family: int = 100
    adversary: int = 100
    mutation: int = 40
    first: int = 0

    def of(self, count: int) -> range:
        return range(self.first, self.first + count)


class Part(Struct, frozen=True):
    """What one case says: a line of the table, and its gates."""

    kind: str
    row: Row
    gates: list[Gate]


def parts(maker: Maker, seeds: Seeds) -> Iterator[Part]:
    """Every case but the mutations, one after the other; the same seeds give the same parts."""
    without, hinted = [], []
    for case in SCENARIOS:
        without.append(row_of([outcome_of(case, seed, maker) for seed in seeds.of(seeds.scenario)]))
        yield Part("scenario", without[-1], scenario_gates(without[-1]))
    for case in NEIGHBOURS:
        hinted.append(row_of([outcome_of(case, seed, maker) for seed in seeds.of(seeds.scenario)]))
        last = [saving_gate(hinted, without)] if case is NEIGHBOURS[-1] else []
        yield Part("neighbour", hinted[-1], neighbour_gates(hinted[-1]) + last)
    for family in FAMILIES:
        row = row_of([outcome_of(family.case(seed), seed, maker) for seed in seeds.of(seeds.family)])
        yield Part("family", row, family_gates(row))
    for adversary in ADVERSARIES:
        outcomes = [outcome_of(adversary.case, seed, maker) for seed in seeds.of(seeds.adversary)]
        yield Part("adversary", row_of(outcomes), adversary_gates(adversary, outcomes))


def mutation_gates(seeds: Seeds) -> Iterator[Gate]:
    """For every mistake made on purpose in the two-counter search: how many gates notice it."""
    for mutation in mutations.MUTATIONS:
        broken = mutations.broken_gates(mutation, seeds.of(seeds.mutation))
        yield Gate(mutation.name, "gates broken by the mutation", len(broken), 1, least=True)


def table(rows: Sequence[Row]) -> str:
    """The rows as text, in per cent."""
    head = ("case", "runs", "error % [5, 95]", "cover", "width", "SUT s", "trials", "conf.", "above", "statuses")
    lines = [head, *(_line(row) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def failures(gates: Sequence[Gate]) -> str:
    """The gates that failed, a line each; empty when none did."""
    failed = [gate for gate in gates if not gate.passed]
    lines = [f"{gate.case}: {gate.name} {gate.value:.3g}, asked {'>=' if gate.least else '<='} {gate.limit:.3g}" for gate in failed]
    return "\n".join(lines)


def _line(row: Row) -> tuple[str, ...]:
    if row.error is None or row.low_error is None or row.high_error is None:
        error = "-"
    else:
        error = f"{100 * row.error:+.1f} [{100 * row.low_error:+.1f}, {100 * row.high_error:+.1f}]"
    statuses = ", ".join(f"{status} {count}" for status, count in sorted(row.statuses.items()))
    return (
        row.case, str(row.runs), error, f"{row.coverage:.0%}", _percent(row.width), f"{row.seconds:.0f}", f"{row.trials:.1f}",
        _percent(row.confirmed), f"{row.above:.0%}", statuses,
    )  # fmt: skip


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"
