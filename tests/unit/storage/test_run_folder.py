"""A run folder keeps what was written, also if its writer is killed."""

import hashlib

import msgspec
import pytest
from msgspec.structs import replace
from scenario_files import read_scenario

from bench.config.site import Site
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Batches, Buckets, Measurement, PlannedTrial, Result, Series
from bench.model.search_inputs import SearchInputs
from bench.storage.folder_lock import is_running
from bench.storage.records import FORMAT, JournalEntry, SearchRecord, VisitRecord, decode_record, encode_record
from bench.storage.run_folder import (
    RunFolder,
    TrialSums,
    read_results,
    read_results_record,
    read_run,
    read_trials,
    read_visits,
    sum_trials,
)
from bench.units import Bandwidth
from producers.kafka.site import KafkaSite

CELL = Cell("python", "kafka", 100, 0.01)
SERIES = Series([0.0, 0.5], [0, 50], [0, 48], [0, 40])


@pytest.fixture
def scenario(request):
    return read_scenario(request.config.rootpath / "scenarios" / "quick.yaml")


@pytest.fixture
def store(tmp_path, scenario):
    site = Site(bandwidth=Bandwidth(1.25e8), sections={"kafka": KafkaSite("localhost:9092")})
    with RunFolder.create(tmp_path, "quick").open(scenario, site, {"cores": 2}) as store:
        yield store


def measurement(number):
    planned = PlannedTrial(number, 100.0, 1.0, 5.0, "search")
    return Measurement(
        planned, "", "complete", 0.0, 6.5, 600, 600, 0, 600, 0, 0, 0, 0,
        drained=True, late=0.0, blocked=0.0, cpu_requested_s=6.0, cpu_used_s=6.001, series=SERIES,
    )  # fmt: skip


def result(cell=CELL):
    return Result(
        cell.system, cell.framework, cell.source, cell.message_bytes, cell.cpu_seconds, "measured", estimate_hz=95.0
    )


def test_run_json_keeps_scenario_and_site_to_the_last_digit(store, scenario):
    """Scenario and site are read back equal."""
    record = read_run(store.folder)
    assert (record.scenario, record.site.bandwidth, record.facts) == (scenario, 1.25e8, {"cores": 2})


def test_a_java_that_the_start_could_not_ask_is_recorded_later(tmp_path, scenario):
    """Then another one is a change; what the record has already stays."""
    for java in (None, "17", "21"):
        with RunFolder(tmp_path).open(scenario, Site(), {"java": java}):
            pass
    assert read_run(tmp_path).facts == {"java": "17"}


def test_a_trial_is_read_back_as_it_was_added(store):
    """Numbers and series are equal."""
    store.add(CELL, measurement(0))
    assert store.trials(CELL) == [measurement(0)]


def test_batches_are_read_back_from_a_file_of_their_own(store):
    """The journal's line does not repeat them, and a trial without batches has no file."""
    batches = Batches([0.1, 1.1], [0.4, 1.6], [30, 50])
    store.add(CELL, measurement(0))
    store.add(CELL, replace(measurement(1), batches=batches))
    assert [one.batches for one in store.trials(CELL)] == [Batches(), batches]
    assert [path.name for path in store.folder.glob("series/*-batches.parquet")] == [f"{CELL.name}-001-batches.parquet"]
    lines = (store.folder / "trials.jsonl").read_bytes().splitlines()
    assert msgspec.json.decode(lines[1])["measurement"].get("batches", {}).get("end", []) == []


def test_the_journal_keeps_the_order(store):
    """It also keeps the trials of different cells separate."""
    other = replace(CELL, message_bytes=1000)
    for cell, number in ((CELL, 0), (other, 0), (CELL, 1)):
        store.add(cell, measurement(number))
    assert [entry.cell for entry in read_trials(store.folder)] == [CELL, other, CELL]
    assert [one.planned.number for one in store.trials(CELL)] == [0, 1]


def test_a_partial_line_is_removed(store, scenario):
    """A harness that is killed while it writes loses that trial and no other."""
    store.add(CELL, measurement(0))
    with (store.folder / "trials.jsonl").open("ab") as journal:
        journal.write(b'{"format": 1, "cell"')
    store.close()
    again = RunFolder(store.folder)
    again.open(scenario, Site(), {})
    again.add(CELL, measurement(1))
    assert [one.planned.number for one in again.trials(CELL)] == [0, 1]
    again.close()


def test_a_finished_cell_has_a_result_in_a_resumed_run(store, scenario):
    """It is not measured again."""
    store.save_result(CELL, result())
    store.close()
    again = RunFolder(store.folder)
    again.open(scenario, Site(), {})
    assert again.has_result(CELL)
    again.close()


def test_an_unsupported_cell_has_no_result_in_a_resumed_run(store, scenario):
    """It is tried again: what it lacked may have been installed."""
    store.save_result(CELL, replace(result(), status="unsupported"))
    store.close()
    again = RunFolder(store.folder)
    again.open(scenario, Site(), {})
    assert not again.has_result(CELL)
    again.close()


@pytest.mark.parametrize(("trials", "kept"), [(0, False), (7, True)])
def test_a_cell_that_an_error_ended_has_no_result_in_a_resumed_run(store, scenario, trials, kept):
    """It is tried again; a failure that its trials show is not."""
    store.save_result(CELL, replace(result(), status="failed", trials=trials))
    store.close()
    again = RunFolder(store.folder)
    again.open(scenario, Site(), {})
    assert again.has_result(CELL) is kept
    again.close()


def test_results_are_one_object_a_cell_with_every_field(store):
    """A value that does not exist is null."""
    store.save_result(CELL, result())
    cells = msgspec.json.decode((store.folder / "cells.json").read_bytes())
    assert cells["format"] == 2
    assert cells["cells"][0]["low_hz"] is None
    assert read_results(store.folder)[0].cell == CELL


def test_a_second_harness_cannot_open_the_folder(store, scenario):
    """Two harnesses would overwrite each other's files."""
    with pytest.raises(UsageError, match="another bench writes to this run"):
        RunFolder(store.folder).open(scenario, Site(), {})


def test_a_folder_is_unlocked_at_the_end_of_a_with(tmp_path, scenario):
    """Another harness can go on with the run."""
    with RunFolder.create(tmp_path, "quick").open(scenario, Site(), {}) as store:
        assert is_running(store.folder)
    assert not is_running(store.folder)
    store.close()


def test_two_runs_of_one_second_have_two_folders(tmp_path):
    """No run overwrites another."""
    assert RunFolder.create(tmp_path, "x").folder != RunFolder.create(tmp_path, "x").folder


def test_a_folder_that_is_no_run_is_refused_in_one_line(tmp_path):
    """The message says what a run's folder is."""
    with pytest.raises(UsageError, match=r"run.json: No such file or directory; a run's folder is"):
        read_run(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"PAR1", None], ids=["empty", "another", "missing"])
def test_a_damaged_series_file_is_named(store, damage):
    """It never changes an answer in silence: one line says which file it is, and what to do."""
    store.add(CELL, measurement(0))
    (table,) = store.folder.glob("series/*.parquet")
    table.unlink()
    if damage is not None:
        table.write_bytes(damage)
    with pytest.raises(UsageError, match=rf"{table.name}: is .*; put it back from a copy or begin a new run; `bench"):
        store.trials(CELL)


def test_a_damaged_series_file_harms_no_other_cell(store):
    """A cell's trials are read without those of others."""
    store.add(CELL, measurement(0))
    store.add(replace(CELL, message_bytes=1000), measurement(0))
    (store.folder / "series" / f"{CELL.name}-000.parquet").unlink()
    assert len(store.trials(replace(CELL, message_bytes=1000))) == 1


@pytest.mark.parametrize(
    ("damage", "said"), [(lambda path: path.write_bytes(b"PAR1"), "no table"), (lambda path: path.unlink(), "missing")]
)
def test_a_damaged_series_file_is_named_without_checksums_too(store, damage, said):
    """Older runs have none."""
    store.add(CELL, measurement(0))
    journal = store.folder / "trials.jsonl"
    entry = decode_record(journal.read_bytes(), JournalEntry, "")
    journal.write_bytes(encode_record(replace(entry, files={})) + b"\n")
    damage(next(store.folder.glob("series/*.parquet")))
    with pytest.raises(UsageError, match=said):
        store.trials(CELL)


def test_an_edited_line_is_named(store):
    """The checksum of the line shows that it was edited."""
    store.add(CELL, measurement(0))
    journal = store.folder / "trials.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"processed":600', b'"processed":599'))
    with pytest.raises(UsageError, match=r"trials.jsonl:1: is not as it was written"):
        store.trials(CELL)


def test_a_line_has_the_checksum_of_every_file_of_its_trial(store):
    """`sha256sum` gives the same."""
    buckets = Buckets([1, 1], ["due", "sent"], [3, 3], [5, 5])
    store.add(CELL, replace(measurement(0), latencies=buckets))
    (entry,) = read_trials(store.folder)
    there = [path for path in store.folder.rglob("*") if path.is_file() and path.parent.name in ("series", "latency")]
    assert entry.files == {
        str(path.relative_to(store.folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in there
    }
    assert len(there) > 1


def test_what_a_killed_harness_left_is_not_of_the_next_trial(store):
    """It was killed after it had written a trial's files, and before it wrote the line: the trial is run again."""
    left = store.folder / "latency" / f"{CELL.name}-000-due.hgrm"
    left.write_text("left behind")
    store.add(CELL, measurement(0))
    assert not left.exists()


def test_a_trial_of_the_journal_is_never_overwritten(store, scenario):
    """Neither by the harness that ran it nor by one that resumes the run."""
    store.add(CELL, measurement(0))
    with pytest.raises(ValueError, match="is in the journal already"):
        store.add(CELL, measurement(0))
    store.close()
    again = RunFolder(store.folder)
    again.open(scenario, Site(), {})
    with pytest.raises(ValueError, match="is in the journal already"):
        again.add(CELL, measurement(0))
    again.close()


def test_the_inputs_of_a_search_are_written_with_its_result(store, scenario):
    """A resumed run keeps those of the cells that it passes over."""
    inputs = SearchInputs(2, 30.0, hint_hz=12.5)
    store.set_inputs(CELL, inputs)
    assert not (store.folder / "cells.json").exists()
    store.save_result(CELL, result())
    store.close()
    again = RunFolder(store.folder)
    again.open(scenario, Site(), {})
    again.save_result(replace(CELL, message_bytes=1000), result(replace(CELL, message_bytes=1000)))
    again.close()
    assert read_results_record(store.folder).searches == [SearchRecord(CELL, inputs)]


def test_a_full_disk_ends_the_run_with_advice(store):
    """Measurements saved before stay. Here a folder is missing, which fails in the same way."""
    store.add(CELL, measurement(0))
    (store.folder / "latency").rename(store.folder / "l")
    (store.folder / "series").rename(store.folder / "s")
    with pytest.raises(UsageError, match=r"cannot be written \(No such file.*--resume"):
        store.add(CELL, measurement(1))
    (store.folder / "s").rename(store.folder / "series")
    assert store.trials(CELL) == [measurement(0)]


def test_a_folder_that_cannot_be_created_is_refused(tmp_path):
    """Here its parent is a file."""
    (tmp_path / "results").write_text("")
    with pytest.raises(UsageError, match="choose another folder with --out"):
        RunFolder.create(tmp_path / "results", "x")


def test_visits_are_read_back_without_the_part_of_a_line(store, scenario):
    """A killed harness may have written a part of the last one; the next harness removes it."""
    visit = VisitRecord(FORMAT, CELL, 25.0, 12.5, 14.2, 3, 12.1, ignored=2, hint_hz=90.0, finished=True)
    store.add_visit(visit)
    store.add_visit(replace(visit, trials=4))
    path = store.folder / "visits.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    store.close()
    store.open(scenario, Site(), {})
    assert read_visits(store.folder) == [visit]


def test_trials_are_summed_by_cell(store):
    """Their number, their seconds, and the cores in use in the busiest one; a run without trials has none."""
    assert sum_trials(store.folder) == {}
    for number in range(2):
        store.add(CELL, measurement(number))
    store.add(replace(CELL, message_bytes=200), measurement(0))
    other = replace(CELL, message_bytes=200)
    store.add(other, replace(measurement(1), cpu={"seconds": 2.0, "busy": 3.0}))
    store.add(other, replace(measurement(2), cpu={"seconds": 0.0, "busy": 0.0}))  # its window did not begin
    assert sum_trials(store.folder) == {CELL: TrialSums(2, 13.0), other: TrialSums(3, 19.5, busy=1.5)}


def test_a_visit_that_a_killed_harness_wrote_in_part_is_not_read(store):
    """A report of the run can be made before it is resumed, which removes that part."""
    with (store.folder / "visits.jsonl").open("ab") as file:
        file.write(b'{"format": 2, "ce')
    assert read_visits(store.folder) == []


@pytest.mark.parametrize("kind", [JournalEntry, VisitRecord])
def test_a_record_with_bytes_that_are_no_text_is_named(kind):
    """The message names the line; it is no bug of ours."""
    with pytest.raises(UsageError, match="journal:3"):
        decode_record(b'{"format": 2, "cell": {"framework": "\xff"}}', kind, "journal:3")


def test_a_link_to_nowhere_is_no_taken_name(tmp_path):
    """The line says so."""
    (tmp_path / "results").symlink_to(tmp_path / "gone")
    with pytest.raises(UsageError, match="cannot be created"):
        RunFolder.create(tmp_path / "results", "x")
