"""A run with a total visits every cell, then those in which more time changes most, and can be killed anywhere."""

from collections.abc import Callable
from pathlib import Path

import pytest
from search_strategies import HalvingSearch

from bench.analysis import foreign_work, late_generator
from bench.cli.terminal import ignore
from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.config.validation import apply_changes, parse_scenario
from bench.config.yaml_document import read_document
from bench.model.measurement import Result
from bench.runner.map_visits import MapVisits
from bench.runner.progress import CellFinished, CellStarted, Notify, ProgressEvent, TrialFinished
from bench.runner.run import RunOptions, run
from bench.search import map_budget
from bench.search.map_budget import interval_width
from bench.storage.run_folder import RunFolder, read_results, read_trials, read_visits

CHANGES = ("search.strategy=search_strategies:HalvingSearch", "grid.message_size=100 B, 2 kB")


@pytest.fixture(autouse=True)
def _shared_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else this machine does is no reason here to throw a trial away."""
    monkeypatch.setattr(foreign_work, "LOSS_FACTOR", 0.0)
    monkeypatch.setattr(late_generator, "STALL_FACTOR", 0.0)


@pytest.fixture
def scenario(request: pytest.FixtureRequest) -> Callable[..., Scenario]:
    """Return the smoke scenario, changed as asked, with a search that needs no overload."""

    def change(*changes: str) -> Scenario:
        document = read_document(request.config.rootpath / "scenarios" / "smoke.yaml")
        return parse_scenario(apply_changes(document, [*CHANGES, *changes]))

    return change


def go_on(folder: Path, scenario: Scenario, notify: Notify = ignore) -> None:
    """Run a scenario in a folder, which may have a part of it already."""
    folder.mkdir(exist_ok=True)
    run(scenario, Site(), RunFolder(folder), notify, RunOptions("bench run", folder / "cache", folder / "children"))


def interrupt_after(trials: int) -> Notify:
    """Return a listener that presses Ctrl-C when so many trials have ended."""
    left = trials

    def notify(event: ProgressEvent) -> None:
        nonlocal left
        left -= isinstance(event, TrialFinished) and event.measurement.planned.purpose != "warm-up"
        if left == 0:
            raise KeyboardInterrupt

    return notify


def test_a_later_visit_narrows_the_widest_interval(
    tmp_path: Path, scenario: Callable[..., Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a first visit of every cell; the map has the last result of each."""
    monkeypatch.setattr(map_budget, "FIRST_SHARE", 0.0)  # first visits are short, so that no search is finished in one
    monkeypatch.setattr(map_budget, "MIN_VISIT_S", 2.0)
    seen: list[CellStarted | CellFinished] = []

    def notify(event: ProgressEvent) -> None:
        if isinstance(event, CellStarted | CellFinished):
            seen.append(event)

    run_folder = tmp_path / "run"
    go_on(run_folder, scenario("search.total=5 min"), notify)
    started = [event for event in seen if isinstance(event, CellStarted)]
    finished = [event for event in seen if isinstance(event, CellFinished)]
    assert {event.cell for event in started[:2]} == set(scenario().cells())
    first: list[Result] = [event.result for event in finished[:2]]
    widest = max(first, key=lambda result: interval_width(result) or 0.0)
    assert (started[2].cell, started[2].visit, started[2].total_s) == (widest.cell, 2, 300.0)
    assert finished[2].earlier == widest
    assert (interval_width(finished[2].result) or 9.9) < (interval_width(widest) or 0.0)
    ends = read_results(run_folder)  # a search that is finished, or an interval that is narrower than asked
    assert all(result.precision_reached or (interval_width(result) or 9.9) <= 0.05 for result in ends)
    assert {result.cell: result for result in read_results(run_folder)} == {
        event.result.cell: event.result for event in finished
    }


def test_a_total_is_exceeded_by_no_later_visit(
    tmp_path: Path, scenario: Callable[..., Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each one begins within it, and so does each of its trials."""
    monkeypatch.setattr(HalvingSearch, "enough", 1000)
    run_folder, total = tmp_path / "run", 14.0
    go_on(run_folder, scenario(f"search.total={total:g} s"))
    visits = read_visits(run_folder)
    for place in range(2, len(visits)):
        assert sum(visit.seconds for visit in visits[:place]) < total
        assert visits[place].allotted <= total - sum(visit.seconds for visit in visits[:place])


def test_a_killed_run_goes_on_within_what_is_left_of_its_total(
    tmp_path: Path, scenario: Callable[..., Scenario]
) -> None:
    """The time that its trials used is gone, also that of a visit which was not recorded."""
    run_folder, whole = tmp_path / "run", scenario("search.total=14 s")
    with pytest.raises(KeyboardInterrupt):
        go_on(run_folder, whole, interrupt_after(4))
    before = [entry.measurement for entry in read_trials(run_folder)]
    store = RunFolder(run_folder)
    visits = MapVisits(whole, store, clock=lambda: 0.0)
    recorded = sum(visit.seconds for visit in read_visits(run_folder))
    unrecorded = sum(trial.seconds for trial in before) - sum(v.trial_seconds for v in read_visits(run_folder))
    assert unrecorded > 0
    assert visits.remaining_s() == pytest.approx(14 - recorded - unrecorded)
    go_on(run_folder, whole)
    numbers = [(entry.cell, entry.measurement.planned.number) for entry in read_trials(run_folder)]
    assert len(numbers) == len(set(numbers)) > len(before)
    assert [entry.measurement for entry in read_trials(run_folder)][: len(before)] == before
    assert {result.status for result in read_results(run_folder)} == {"measured"}
    assert sum(visit.seconds for visit in read_visits(run_folder)[:-1]) < 14
