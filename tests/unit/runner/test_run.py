"""A run makes its map again from the journal, and tries cells again that other work disturbed."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cgroups import can_limit_memory, memory_cgroup
from msgspec.structs import replace
from search_strategies import HalvingSearch
from simulated_runs import NoBackend, run_simulated

from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.config.validation import apply_changes, parse_scenario
from bench.config.yaml_document import read_document
from bench.errors import ServiceError
from bench.model.measurement import Measurement
from bench.runner.progress import CellStarted, ProgressEvent
from bench.runner.run import RunOptions, run
from bench.storage.run_folder import RunFolder, read_results, read_trials

CHANGES = ("search.strategy=search_strategies:HalvingSearch", "grid.message_size=100 B, 2 kB", "grid.cpu_cost=1 ms")
TRIALS = HalvingSearch.enough
REASON = "other work took 30 % of this machine"


@pytest.fixture
def scenario(request: pytest.FixtureRequest) -> Callable[..., Scenario]:
    """Return the smoke scenario, changed as asked, with a search of a fixed number of trials."""

    def change(*changes: str) -> Scenario:
        document = read_document(request.config.rootpath / "scenarios" / "smoke.yaml")
        return parse_scenario(apply_changes(document, [*CHANGES, *changes]))

    return change


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """Return an empty run folder."""
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def disturb(measurement: Measurement) -> Measurement:
    """Return a measurement in which the hypervisor stole a third of the machine, and threads took it for their own."""
    cpu = {"framework": 1.0, "busy": 1.0, "steal": 3.0, "available": 9.0}
    return replace(measurement, cpu=cpu, cpu_used_s=1.3 * measurement.cpu_requested_s)


def make_map_again(folder: Path, scenario: Scenario) -> None:
    """Run a scenario again whose results are lost, without a backend."""
    (folder / "cells.json").unlink()
    options = RunOptions("bench run x", folder, folder / "children", backend=NoBackend)
    run(scenario, Site(), RunFolder(folder), lambda _: None, options)


@pytest.mark.parametrize("search", ["search.total=5 min", "search.budget=30 s"], ids=["total", "budget"])
def test_a_lost_map_is_made_again_from_the_journal(
    run_folder: Path, scenario: Callable[..., Scenario], search: str
) -> None:
    """Nothing is deployed, and the results of all passes are the same."""
    whole = scenario(search)
    run_simulated(whole, Site(), RunFolder(run_folder))
    before, trials = read_results(run_folder), len(read_trials(run_folder))
    make_map_again(run_folder, whole)
    assert (read_results(run_folder), len(read_trials(run_folder))) == (before, trials)


@pytest.mark.parametrize("search", ["search.total=5 min", "search.budget=30 s"], ids=["total", "budget"])
def test_a_cell_that_an_error_ended_is_measured_when_the_run_goes_on(
    run_folder: Path, scenario: Callable[..., Scenario], search: str
) -> None:
    """Its trials before the error count."""

    def fail(measurement: Measurement) -> Measurement:
        if measurement.planned.number == 2:
            raise ServiceError("kafka ended: No space left on device")
        return measurement

    whole = scenario(search, "grid.message_size=100 B")
    run_simulated(whole, Site(), RunFolder(run_folder), change=fail)
    assert [result.status for result in read_results(run_folder)] == ["failed"]
    assert len(read_trials(run_folder)) == 2
    run_simulated(whole, Site(), RunFolder(run_folder))
    (result,) = read_results(run_folder)
    assert (result.status, result.trials) == ("measured", len(read_trials(run_folder)))


def test_an_error_on_a_later_visit_does_not_end_a_cell(run_folder: Path, scenario: Callable[..., Scenario]) -> None:
    """It keeps its result meanwhile, and the search goes on where there is time."""
    visits: list[int] = []

    def notify(event: ProgressEvent) -> None:
        if isinstance(event, CellStarted):
            visits.append(event.visit)

    def fail(measurement: Measurement) -> Measurement:
        if visits[-1] == 2:
            raise ServiceError("kafka ended: a broken pipe")
        return measurement

    whole = scenario("search.total=60 s", "search.strategy=two-counter", "grid.message_size=100 B")
    run_simulated(whole, Site(), RunFolder(run_folder), notify=notify, change=fail)
    (result,) = read_results(run_folder)
    assert visits[:3] == [1, 2, 3]
    assert result.low_hz is not None
    assert result.trials == len(read_trials(run_folder))


@pytest.mark.skipif(not can_limit_memory(), reason="no cgroup with a limit of memory can be made here")
def test_a_cell_that_fails_while_memory_runs_out_says_so(run_folder: Path, scenario: Callable[..., Scenario]) -> None:
    """The kernel kills one process, and another one tells of it: a reader of its broker."""

    def fail(_: Measurement) -> Measurement:
        with memory_cgroup(64 * 2**20) as cgroup:
            join = f"open('{cgroup}/cgroup.procs', 'w').write('0')"
            subprocess.run([sys.executable, "-c", f"{join}; bytearray(256 * 2**20)"], check=False)
        raise ServiceError("python-0 ended: all brokers are down")

    run_simulated(scenario("grid.message_size=100 B"), Site(), RunFolder(run_folder), change=fail)
    (result,) = read_results(run_folder)
    assert result.reason == (
        "python-0 ended: all brokers are down; meanwhile memory ran out, and the kernel killed a process"
    )


def test_a_cell_that_other_work_disturbed_is_tried_again(run_folder: Path, scenario: Callable[..., Scenario]) -> None:
    """At the end of the run, without its disturbed trials; it has a rate then, also when its result is lost."""
    started: list[CellStarted] = []

    def change(measurement: Measurement) -> Measurement:
        return disturb(measurement) if measurement.planned.number < 3 else measurement

    def notify(event: ProgressEvent) -> None:
        if isinstance(event, CellStarted):
            started.append(event)

    whole = scenario("search.budget=30 s")
    run_simulated(whole, Site(), RunFolder(run_folder), notify=notify, change=change)
    assert [event.cell for event in started] == [*whole.cells()] * 2
    assert [event.visit for event in started] == [1, 1, 2, 2]
    before = read_results(run_folder)
    assert [(result.status, result.trials) for result in before] == [("measured", TRIALS)] * 2
    make_map_again(run_folder, whole)
    assert read_results(run_folder) == before


def test_a_cell_that_stays_disturbed_is_tried_once_more_only(
    run_folder: Path, scenario: Callable[..., Scenario]
) -> None:
    """It keeps its status and its reason; a resumed run does not try it a third time."""
    whole = scenario("grid.message_size=100 B", "search.budget=30 s")
    for _ in range(2):
        run_simulated(whole, Site(), RunFolder(run_folder), change=disturb)
        (result,) = read_results(run_folder)
        assert (result.status, result.reason) == ("not-measured", REASON)
        assert len(read_trials(run_folder)) == 6
