"""A search that was killed at any moment and resumed from its journal plans what it would have planned."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.analysis.verdict import Rules, judge
from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.search.two_counter import TwoCounter
from bench.simulation.capacity import Traits
from bench.simulation.driver import Case
from bench.simulation.faults import Faults
from bench.simulation.fluid import Fluid
from bench.storage.run_folder import RunFolder

RULES = Rules(precision=0.1)


def resumed(question, folder):
    """The search that learns its trials from a folder, and how many there are."""
    store = RunFolder(folder)
    store.open(Scenario("x", ("simulated/fluid",), None), Site(), {})
    search, trials = TwoCounter(question), store.trials(question.cell)
    for seen in trials:
        search = search.after(seen, judge(seen, RULES))
    store.close()
    return search, len(trials)


@settings(max_examples=12)
@given(
    ceiling=st.floats(0.5, 500_000),
    interval=st.sampled_from([0.0, 1.0]),
    hint=st.sampled_from([None, 0.5, 1.1]),
    fault=st.sampled_from([Faults(), Faults(dies_at=150.0), Faults(resets_at=150.0)]),
    cut=st.floats(0, 1),
    torn=st.integers(0, 400),
)
def test_the_same_journal_gives_the_same_next_trial(ceiling, interval, hint, fault, cut, torn):
    """Cut after any trial, with any part of a half-written line behind it."""
    case = Case("any", Traits(ceiling, batch_interval=interval), lowest=0.1, hint=hint, faults=fault)
    question, system = case.question(), Fluid(case.traits, case.faults, 3)
    with tempfile.TemporaryDirectory() as place:
        store = RunFolder(Path(place))
        store.open(Scenario("x", ("simulated/fluid",), None), Site(), {})
        search, plans = TwoCounter(question), []
        while (planned := search.next_trial()) is not None:
            plans.append(planned)
            seen = system.trial(planned, 30.0)
            store.add(question.cell, seen)
            search = search.after(seen, judge(seen, RULES))
            if not (seen.drained and seen.lost == 0):
                system.restart()
        store.close()
        journal = Path(place) / "trials.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        cached_resource = round(cut * len(lines))
        half = lines[cached_resource][:torn].rstrip(b"\n") if cached_resource < len(lines) else b""
        journal.write_bytes(b"".join(lines[:cached_resource]) + half)
        again, count = resumed(question, Path(place))
        assert count == cached_resource
        assert again.next_trial() == ([*plans, None][cached_resource])
        if cached_resource == len(lines):
            assert again.result() == search.result()
