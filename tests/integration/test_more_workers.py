"""A cell that one process of the load generator limits is measured again with two."""

import math
from pathlib import Path

import pytest

from bench.analysis import foreign_work, late_generator
from bench.analysis.verdict import GENERATOR_LATE, Rules, Verdict
from bench.calibration.calibration_file import read_calibration
from bench.config.scenario import Grid, Scenario, Search
from bench.config.site import Site
from bench.model.measurement import Measurement
from bench.model.message_sizes import MessageSize
from bench.runner import cell_search, map_visits, replay
from bench.runner.progress import CellStarted, ProgressEvent
from bench.runner.run import RunOptions, run
from bench.storage.run_folder import RunFolder, read_results, read_visits
from bench.system import host_info
from bench.units import Rate, Seconds

SEARCH = Search(budget=Seconds(10), start=Rate(400), highest=Rate(2000))


@pytest.mark.parametrize("source", ["files", "tcp"])
def test_two_processes_send_where_one_is_the_limit(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a ceiling of their own; the trials that one process could not send are forgotten, the others are kept."""
    started: list[CellStarted] = []
    late: set[int] = set()
    sent_by_two: set[int] = set()

    def judge(measurement: Measurement, rules: Rules) -> Verdict:
        planned = measurement.planned
        if started[-1].workers == 1 and planned.rate > 500:
            late.add(planned.number)
        elif planned.rate > 500:
            sent_by_two.add(planned.number)
        if planned.number in late:
            return Verdict("invalid", GENERATOR_LATE, cause="generator")
        return Verdict("sustained")  # what else this machine does is no reason to stay below

    def notify(event: ProgressEvent) -> None:
        if isinstance(event, CellStarted):
            started.append(event)

    monkeypatch.setattr(cell_search, "judge", judge)
    monkeypatch.setattr(replay, "judge", judge)
    monkeypatch.setattr(host_info, "cores", lambda: 2)
    monkeypatch.setattr(map_visits, "MAX_BUSY_SHARE", math.inf)  # what else this machine does is no reason here
    monkeypatch.setattr(foreign_work, "LOSS_FACTOR", 0.0)
    monkeypatch.setattr(late_generator, "STALL_FACTOR", 0.0)
    folder = tmp_path / "run"
    folder.mkdir()
    scenario = Scenario("more-workers", (f"python/{source}",), Grid((MessageSize(100),)), search=SEARCH)
    run(scenario, Site(), RunFolder(folder), notify, RunOptions("bench run", tmp_path / "cache", tmp_path / "children"))
    assert [(event.visit, event.workers) for event in started] == [(1, 1), (2, 2)]
    assert [record.workers for record in read_visits(folder)] == [1, 2]
    assert {ceiling.workers for ceiling in read_calibration(folder)} == {1, 2}
    (result,) = read_results(folder)
    assert late
    assert sent_by_two - late  # a rate that one process could not send was tried again
    assert result.lost == result.duplicated == 0
