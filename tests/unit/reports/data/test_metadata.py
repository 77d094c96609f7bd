"""A report says how much of the machine was not the run's."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

from pathlib import Path

from msgspec.structs import replace
from sample_runs import QUICK, make_measurement, make_result, open_run_folder

from bench.system.machine_speed import MachineSpeed
from reports.data.metadata import describe_subject
from reports.data.run_data import read_run_data


def test_the_share_that_other_work_took_is_said_where_it_is_known(tmp_path: Path) -> None:
    """Its mean over all windows, and its largest of one trial."""
    calm = make_measurement(0, 100.0, 200.0)
    disturbed = replace(make_measurement(1, 120.0, 200.0), cpu={**calm.cpu, "busy": 18.0, "steal": 4.0})
    unknown = replace(make_measurement(2, 140.0, 200.0), cpu={})
    said = []
    for name, trials in (("known", [calm, disturbed, unknown]), ("not known", [unknown])):
        with open_run_folder(tmp_path / name, QUICK) as store:
            cell = QUICK.cells()[0]
            for trial in trials:
                store.add(cell, trial)
            store.save_result(cell, make_result(cell))
        said.append(dict(describe_subject(read_run_data(tmp_path / name))).get("Other work"))
    shares = "took 10.5% of a machine on average, 20% in one trial"
    assert said == [f"{shares}; the more it takes, the wider intervals are", None]


def test_how_far_the_speed_of_a_core_changed_is_said_where_it_was_measured_twice(tmp_path: Path) -> None:
    """Another user of a shared host makes cores slower, without stolen time."""
    with open_run_folder(tmp_path / "run", QUICK) as store:
        store.save_result(QUICK.cells()[0], make_result(QUICK.cells()[0]))
    run_data, speeds = read_run_data(tmp_path / "run"), [MachineSpeed(cpu, 8e9) for cpu in (70e6, 50e6, 60e6)]
    said = [
        dict(describe_subject(replace(run_data, speeds=tuple(speeds[:count])))).get("Speed of a core")
        for count in (0, 1, 3)
    ]
    changed = "0.83 to 1.17 times its mean, by a fixed piece of work at 3 moments"
    assert said == [None, None, f"{changed}; where it changes, so do the systems' rates"]
