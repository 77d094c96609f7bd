"""Runs of format 1 can be read, reported and compared, but not resumed; format_1_run is a part of a real run."""

import json
import shutil
from pathlib import Path

import pytest

from bench.config.site import Site
from bench.errors import UsageError
from bench.model.measurement import Bound, ClockOffset
from bench.storage import format_1
from bench.storage.records import JournalEntry, Results, decode_record
from bench.storage.run_folder import RunFolder, read_results, read_run, read_trials
from reports.data.run_data import read_run_data

RUN = Path(__file__).parent / "format_1_run"
NEWER = "is of format 3, and this version of stream-bench reads formats 1 to 2"


@pytest.fixture
def copy(tmp_path):
    """Return a copy of the run that a test may change."""
    return Path(shutil.copytree(RUN, tmp_path / "run"))


def test_an_old_journal_is_read_with_its_series():
    """Every number has its value of format 1 under its name of format 2."""
    old = [json.loads(line)["measurement"] for line in (RUN / "trials.jsonl").read_text().splitlines()]
    new = [entry.measurement for entry in read_trials(RUN)]
    assert len(new) == 4
    for before, after in zip(old, new, strict=True):
        assert after.planned.number == before["planned"]["number"]
        assert (after.cpu_requested_s, after.cpu_used_s) == (before["asked"], before["burnt"])
        assert after.out_of_order == before["disordered"]
        assert after.cpu == before["cpu"]
        assert after.series.processed[-1] == after.processed


def test_old_results_are_read():
    """The cell keeps its estimate."""
    (result,) = read_results(RUN)
    assert (result.system, result.status, round(result.estimate_hz)) == ("capacity/memory", "measured", 5049)


def test_an_old_run_is_read_with_its_scenario():
    """Scenario, facts and start time are those of run.json; the record is of format 2."""
    record = read_run(RUN)
    assert (record.format, record.scenario.name, record.started) == (2, "smoke", "2026-11-22T13:33:21Z")
    assert record.facts["kernel"].startswith("Linux")


def test_an_old_run_can_be_reported():
    """Reports read the folder as any other."""
    data = read_run_data(RUN)
    assert [len(cell.trials) for cell in data.cells] == [0, 4]


def test_an_old_run_cannot_be_resumed(copy):
    """One folder has trials of one format."""
    with pytest.raises(UsageError, match=r"is a run of format 1.*not resumed: begin a new run"):
        RunFolder(copy).open(read_run(copy).scenario, Site(), {})


@pytest.mark.parametrize(("name", "read"), [("run.json", read_run), ("cells.json", read_results)])
def test_a_file_of_a_newer_format_is_refused_in_one_line(copy, name, read):
    """The line names the file, its format and the formats that can be read."""
    path = copy / name
    path.write_text(path.read_text().replace('"format": 1', '"format": 3'))
    with pytest.raises(UsageError, match=f"{name}: {NEWER}"):
        read(copy)


def test_a_journal_line_of_a_newer_format_is_refused_with_its_number(copy):
    """The number of the line follows the name of the file."""
    path = copy / "trials.jsonl"
    first, second, *_ = path.read_text().splitlines()
    path.write_text("\n".join([first, second.replace('"format":1', '"format":3'), ""]))
    with pytest.raises(UsageError, match=f"trials.jsonl:2: {NEWER}"):
        read_trials(copy)


@pytest.mark.parametrize("damaged", [b"", b"[]", b'{"format": 1}', b'{"format": 1, "cell": {}, "measurement": null}'])
def test_a_line_that_is_no_record_is_refused(damaged):
    """Damage of any kind is one line, not a traceback."""
    with pytest.raises(UsageError, match=r"trials.jsonl:7: not of format 2"):
        decode_record(damaged, JournalEntry, "trials.jsonl:7")


def test_soft_bounds_are_renamed():
    """Their name in format 1 was another one; the names of systems stay as they are."""
    cell = json.loads((RUN / "cells.json").read_text())["cells"][0]
    old = {
        **cell,
        "system": "python/kafka",
        "framework": "python",
        "roofs": [{"name": "disk", "hz": 10.0, "hard": False}],
    }
    new = format_1.upgrade_results({"format": 1, "cells": [old]})
    (result,) = decode_record(json.dumps(new).encode(), Results, "cells.json").cells
    assert result.soft_bounds == (Bound("disk", 10.0, hard=False),)
    assert (result.system, result.framework) == ("python/kafka", "python")


def test_the_error_of_clocks_is_renamed():
    """Format 1 calls it most."""
    entry = json.loads((RUN / "trials.jsonl").read_text().splitlines()[0])
    entry["measurement"]["clocks"] = {"host": "b1", "offset": 0.1, "bound": 0.2, "most": 0.3}
    upgraded = json.dumps(format_1.upgrade_entry(entry)).encode()
    assert decode_record(upgraded, JournalEntry, "trials.jsonl").measurement.clocks == ClockOffset("b1", 0.1, 0.2, 0.3)


def test_results_without_soft_bounds_are_read():
    """The first runs of format 1 had none."""
    cell = json.loads((RUN / "cells.json").read_text())["cells"][0]
    cell.pop("roofs")
    new = format_1.upgrade_results({"format": 1, "cells": [cell]})
    assert decode_record(json.dumps(new).encode(), Results, "cells.json").cells[0].soft_bounds == ()
