"""What a run folder holds survives whoever wrote it."""

import msgspec
import pytest
from msgspec.structs import replace

from bench.config.site import KafkaSite, Site
from bench.config.validation import read_scenario
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Measurement, Planned, Result, Series
from bench.storage.run_folder import RunFolder, read_results, read_run, read_trials
from bench.units import Bandwidth

CELL = Cell("plain", "kafka", 100, 0.01)
SERIES = Series([0.0, 0.5], [0, 50], [0, 48], [0, 40])


@pytest.fixture
def scenario(request):
    return read_scenario(request.config.rootpath / "scenarios" / "quick.yaml")


@pytest.fixture
def store(tmp_path, scenario):
    store = RunFolder.fresh(tmp_path, "quick")
    store.open(scenario, Site(bandwidth=Bandwidth(1.25e8), kafka=KafkaSite("localhost:9092")), {"cores": 2})
    yield store
    store.close()


def seen(number):
    planned = Planned(number, 100.0, 1.0, 5.0, "search")
    return Measurement(
        planned, "", "complete", 0.0, 6.5, 600, 600, 0, 600, 0, 0, 0, 0,
        drained=True, late=0.0, blocked=0.0, cpu_requested_s=6.0, cpu_used_s=6.001, series=SERIES,
    )  # fmt: skip


def result(cell=CELL):
    return Result(
        cell.system, cell.framework, cell.source, cell.message_bytes, cell.cpu_seconds, "measured", estimate_hz=95.0
    )


def test_a_run_says_what_was_run_to_the_last_digit(store, scenario):
    """Scenario and site are read back equal."""
    record = read_run(store.folder)
    assert (record.scenario, record.site.bandwidth, record.facts) == (scenario, 1.25e8, {"cores": 2})


def test_a_trial_is_read_back_as_it_was_added(store):
    """Numbers and series."""
    store.add(CELL, seen(0))
    assert store.trials(CELL) == [seen(0)]


def test_the_journal_keeps_the_order(store):
    """And the trials of cells apart."""
    other = replace(CELL, message_bytes=1000)
    for cell, number in ((CELL, 0), (other, 0), (CELL, 1)):
        store.add(cell, seen(number))
    assert [entry.cell for entry in read_trials(store.folder)] == [CELL, other, CELL]
    assert [one.planned.number for one in store.trials(CELL)] == [0, 1]


def test_half_a_line_is_forgotten(store, scenario):
    """A harness that was killed while it wrote loses that trial and no other."""
    store.add(CELL, seen(0))
    with (store.folder / "trials.jsonl").open("ab") as journal:
        journal.write(b'{"format": 1, "cell"')
    store.close()
    again = RunFolder(store.folder)
    again.open(scenario, Site(), {})
    again.add(CELL, seen(1))
    assert [one.planned.number for one in again.trials(CELL)] == [0, 1]
    again.close()


def test_a_finished_cell_is_known_to_the_next_run(store, scenario):
    """It is passed over."""
    store.finish(CELL, result())
    store.close()
    again = RunFolder(store.folder)
    again.open(scenario, Site(), {})
    assert again.has_result(CELL)
    again.close()


def test_results_are_one_object_a_cell_with_every_field(store):
    """A value that does not exist is null."""
    store.finish(CELL, result())
    cells = msgspec.json.decode((store.folder / "cells.json").read_bytes())
    assert cells["format"] == 1
    assert cells["cells"][0]["low_hz"] is None
    assert read_results(store.folder)[0].cell == CELL


def test_a_second_harness_is_kept_out(store, scenario):
    """Two would overwrite each other."""
    with pytest.raises(UsageError, match="another bench writes to this run"):
        RunFolder(store.folder).open(scenario, Site(), {})


def test_two_runs_of_one_second_have_two_folders(tmp_path):
    """No run overwrites another."""
    assert RunFolder.fresh(tmp_path, "x").folder != RunFolder.fresh(tmp_path, "x").folder


def test_a_folder_that_is_no_run_is_refused_in_one_line(tmp_path):
    """The message says what a run's folder is."""
    with pytest.raises(UsageError, match=r"run.json: No such file or directory; a run's folder is"):
        read_run(tmp_path)


@pytest.mark.parametrize("cut", [0, 100, -1])
def test_a_series_that_the_disk_has_lost_is_named(store, cut):
    """A crash may leave less of a table than was written; which file that is, one line says."""
    store.add(CELL, seen(0))
    (table,) = store.folder.glob("series/*.parquet")
    table.write_bytes(table.read_bytes()[:cut])
    with pytest.raises(UsageError, match=f"{table.name}: no table of a trial"):
        store.trials(CELL)
    table.unlink()
    assert store.trials(CELL)[0].series == Series()


def test_a_disk_that_takes_nothing_more_ends_the_run_with_what_to_do(store):
    """What was saved before stays; so it is for a folder that somebody has deleted."""
    store.add(CELL, seen(0))
    (store.folder / "latency").rename(store.folder / "l")
    (store.folder / "series").rename(store.folder / "s")
    with pytest.raises(UsageError, match=r"cannot be written \(No such file.*--resume"):
        store.add(CELL, seen(1))
    (store.folder / "s").rename(store.folder / "series")
    assert store.trials(CELL) == [seen(0)]


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    """A file stands where the folder should."""
    (tmp_path / "results").write_text("")
    with pytest.raises(UsageError, match="choose another place with --out"):
        RunFolder.fresh(tmp_path / "results", "x")


def test_the_cpu_share_of_a_service_on_another_host_is_null(store):
    """In cells.json as it is written: the CPU of a client on this machine is not that of the service."""
    store.finish(CELL, replace(result(), cpu_share={"framework": 1.5, "source": 0.0}))
    (written,) = msgspec.json.decode((store.folder / "cells.json").read_bytes())["cells"]
    assert written["cpu_share"] == {"framework": 1.5, "source": None}
    assert read_results(store.folder)[0].cpu_share["source"] is None
