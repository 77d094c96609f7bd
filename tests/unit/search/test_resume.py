"""A search that was killed at any moment and resumed from its journal plans the same next trial."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.analysis.verdict import Rules, judge
from bench.config.scenario import Grid, Scenario
from bench.config.site import Site
from bench.model.message_sizes import MessageSize
from bench.search.two_counter import TwoCounter
from bench.simulation.capacity import Traits
from bench.simulation.driver import Case
from bench.simulation.faults import Faults
from bench.simulation.fluid import Fluid
from bench.storage.run_folder import RunFolder

RULES = Rules(precision=0.1)
SCENARIO = Scenario("x", ("simulated/fluid",), Grid((MessageSize(100),)))


def resumed(problem, folder):
    """Return the search that learns its trials from a folder, and the number of its trials."""
    store = RunFolder(folder)
    store.open(SCENARIO, Site(), {})
    search, trials = TwoCounter(problem), store.trials(problem.cell)
    for measurement in trials:
        search = search.after(measurement, judge(measurement, RULES))
    store.close()
    return search, len(trials)


@settings(max_examples=12)
@given(
    capacity=st.floats(0.5, 500_000),
    interval=st.sampled_from([0.0, 1.0]),
    hint=st.sampled_from([None, 0.5, 1.1]),
    fault=st.sampled_from([Faults(), Faults(dies_at=150.0), Faults(resets_at=150.0)]),
    cut=st.floats(0, 1),
    partial=st.integers(0, 400),
)
def test_the_same_journal_gives_the_same_next_trial(capacity, interval, hint, fault, cut, partial):
    """The journal may end after any trial, and in any part of a line."""
    case = Case("any", Traits(capacity, batch_interval=interval), lowest=0.1, hint=hint, faults=fault)
    problem, system = case.problem, Fluid(case.traits, case.faults, 3)
    with tempfile.TemporaryDirectory() as folder:
        store = RunFolder(Path(folder))
        store.open(SCENARIO, Site(), {})
        search, plans = TwoCounter(problem), []
        while (planned := search.next_trial()) is not None:
            plans.append(planned)
            measurement = system.run_trial(planned, 30.0)
            store.add(problem.cell, measurement)
            search = search.after(measurement, judge(measurement, RULES))
            if not (measurement.drained and measurement.lost == 0):
                system.restart()
        store.close()
        journal = Path(folder) / "trials.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        whole = round(cut * len(lines))
        half = lines[whole][:partial].rstrip(b"\n") if whole < len(lines) else b""
        journal.write_bytes(b"".join(lines[:whole]) + half)
        again, count = resumed(problem, Path(folder))
        assert count == whole
        assert again.next_trial() == ([*plans, None][whole])
        if whole == len(lines):
            assert again.result() == search.result()
