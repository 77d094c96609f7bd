"""A run is verified: what is damaged or edited is found, and the trials give the results again."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from simulated_runs import SCENARIO, make_simulated_run, run_simulated

from bench.config.scenario import Grid, LatencyTrials
from bench.config.site import Site
from bench.model.message_sizes import MessageSize
from bench.runner.progress import TrialFinished
from bench.runner.verification import Verification, check_run, summary_text, verify_run
from bench.storage.checksums import seal
from bench.storage.folder_lock import is_running
from bench.storage.run_folder import RunFolder, read_results, read_trials
from bench.units import Seconds, Share

SMALL = replace(
    SCENARIO,
    systems=("python/kafka", "spark/kafka", "spark/tcp"),
    grid=Grid((MessageSize(100), MessageSize(1000)), (Seconds(0.001),)),
    latency=LatencyTrials((Share(0.5),), Seconds(5)),
    load=replace(SCENARIO.load, entropy=Share(1)),  # which spark/tcp does not support
)
FORMAT_1 = Path(__file__).parents[1] / "storage" / "format_1_run"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_simulated_run(tmp_path_factory.mktemp("verification") / "run", SMALL)


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    """Return a copy of the run that a test may damage."""
    return Path(shutil.copytree(kept, tmp_path / "run"))


def edit(path: Path, change: Callable[[str], str]) -> None:
    """Change the text of a file."""
    before = path.read_text()
    path.write_text(change(before))
    assert path.read_text() != before


def edit_results(folder: Path, **changes: object) -> None:
    """Change the first measured result as somebody would who renews the checksum, too."""
    path = folder / "cells.json"
    whole = json.loads(path.read_text())
    whole.pop("checksum")
    next(cell for cell in whole["cells"] if cell["status"] == "measured").update(changes)
    path.write_bytes(seal(msgspec.json.encode(whole)))


def first_series(folder: Path) -> Path:
    return min((folder / "series").iterdir())


def test_a_run_as_it_was_measured_has_no_difference(folder: Path) -> None:
    """Every result is computed again to the last digit, with latency trials and unsupported cells."""
    found = verify_run(folder)
    purposes = [entry.measurement.planned.purpose for entry in read_trials(folder)]
    assert {"unsupported", "measured"} <= {result.status for result in read_results(folder)}
    assert purposes.count("latency") == 4
    assert found == Verification(6, len(purposes), len(purposes), (), ())


def test_the_progress_is_told(folder: Path) -> None:
    """The progress is reported cell by cell."""
    told: list[tuple[int, int]] = []
    verify_run(folder, lambda done, total: told.append((done, total)))
    assert told == [(number, 6) for number in range(1, 7)]


def test_an_edited_result_is_found(folder: Path) -> None:
    """The checksum of cells.json shows it, and so do the trials."""
    edit(folder / "cells.json", lambda text: text.replace('"estimate_hz": ', '"estimate_hz": 1', 1))
    found = verify_run(folder).differences
    assert found[0] == "cells.json: was edited after the run"
    assert "is not what its trials give: estimate_hz is 1" in found[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"estimate_hz": 5000.0},
        {"status": "lower-bound"},
        {"status": "failed", "estimate_hz": None},
        {"status": "unsupported", "reason": "no", "trials": 0},
        {"generator_hz": 1e6},
        {"trials": 3},
        {"latency_s": {"p50": 0.1}},
        {"low_hz": None, "high_hz": 1.0, "estimate_hz": 2.0, "confirmed_hz": 3.0},
    ],
    ids="+".join,
)
def test_a_forged_result_is_found_by_its_trials(folder: Path, changes: dict[str, object]) -> None:
    """Every field is compared; the line names three at most."""
    edit_results(folder, **changes)
    (difference,) = verify_run(folder).differences
    assert difference.startswith("cells.json: python-kafka-100B-1ms is not what its trials give: ")


def test_a_missing_result_is_found(folder: Path) -> None:
    """A search gave it."""
    path = folder / "cells.json"
    whole = json.loads(path.read_text())
    del whole["cells"][0], whole["checksum"]
    path.write_bytes(seal(msgspec.json.encode(whole)))
    found = verify_run(folder)
    assert found.differences == ("cells.json: the result of python-kafka-100B-1ms is missing",)
    assert found.unchecked == ("1 cells have no result yet, 1 of them have trials",)


def test_an_edited_line_is_found(folder: Path) -> None:
    """The line's checksum covers fields that no result depends on; the result of its cell is not computed from it."""
    edit(folder / "trials.jsonl", lambda text: text.replace('"started":""', '"started":"2026"', 1))
    found = verify_run(folder)
    assert found.differences == ("trials.jsonl:1: was edited after the trial",)
    assert len(found.unchecked) == 1


@pytest.mark.parametrize("name", ["visits.jsonl", "elasticity.jsonl"])
def test_an_edited_visit_or_decision_is_found(folder: Path, name: str) -> None:
    """A report says so, too."""
    (folder / name).write_bytes(seal(b'{"backlog":100}') + b"\n" + seal(b'{"backlog":200}') + b"\n")
    assert verify_run(folder).differences == ()
    edit(folder / name, lambda text: text.replace("200", "0"))
    assert verify_run(folder).differences == check_run(folder) == (f"{name}:2: was edited after the run",)
    edit(folder / name, lambda text: text.replace('"checksum"', '"checksun"').replace('"checksun"', '"checksum"', 1))
    assert verify_run(folder).differences == (f"{name}:2: has no checksum, unlike a line before it",)


@pytest.mark.parametrize("name", ["visits.jsonl", "elasticity.jsonl"])
@pytest.mark.parametrize(
    "line", ['{"format":2,"cell":{"framework":"capa', "{}", '{"a":' * 100_000], ids=["cut", "empty", "deep"]
)
def test_a_line_that_is_no_record_is_not_taken_for_an_older_versions(folder: Path, name: str, line: str) -> None:
    """Lines of older versions have no checksum, but are records."""
    (folder / name).write_text(f"{line}\n")
    assert verify_run(folder).differences == (f"{name}:1: is no record of a run",)


def test_a_trial_that_is_twice_in_the_journal_is_found(folder: Path) -> None:
    """The harness writes none twice."""
    edit(folder / "trials.jsonl", lambda text: text + text.splitlines(keepends=True)[0])
    (line, *_) = [one for one in verify_run(folder).differences if "second time" in one]
    assert line.startswith("trials.jsonl:")


@pytest.mark.parametrize(
    ("old", "new"),
    [('"message_bytes": 100', '"message_bytes": -1'), ('"low_hz": ', '"low_hz": -')],
    ids=["size", "rate"],
)
def test_a_result_that_cannot_be_is_found(folder: Path, old: str, new: str) -> None:
    """It is no traceback."""
    edit(folder / "cells.json", lambda text: text.replace(old, new, 1))
    assert "cells.json: not of format 2" in verify_run(folder).differences[0]


def test_a_line_that_is_no_trial_is_found(folder: Path) -> None:
    """The others are checked."""
    edit(folder / "trials.jsonl", lambda text: text.replace('{"format":2', '{"format":[', 1))
    found = verify_run(folder)
    assert "trials.jsonl:1: not of format 2" in found.differences[0]
    assert found.trials == len(read_trials_of(folder)) - 1


def read_trials_of(folder: Path) -> list[str]:
    return (folder / "trials.jsonl").read_text().splitlines()


def test_a_removed_line_is_found(folder: Path) -> None:
    """The file that it leaves behind shows it, and so does the result."""
    edit(folder / "trials.jsonl", lambda text: text.split("\n", 1)[1])
    found = verify_run(folder).differences
    assert found[0] == "series/python-kafka-100B-1ms-000.parquet: is of no trial in trials.jsonl"
    assert found[1].startswith("cells.json: python-kafka-100B-1ms is not what its trials give")


def test_a_missing_journal_is_found(folder: Path) -> None:
    """Its results have nothing behind them."""
    (folder / "trials.jsonl").unlink()
    assert verify_run(folder).differences[0] == "trials.jsonl: is missing"


def test_a_deleted_series_is_found(folder: Path) -> None:
    """The line names the file."""
    first_series(folder).unlink()
    assert verify_run(folder).differences == ("series/python-kafka-100B-1ms-000.parquet: is missing",)


@pytest.mark.parametrize("length", [0, 100, -1])
def test_a_truncated_series_is_found(folder: Path, length: int) -> None:
    """A truncated series is found, however much of it is left."""
    path = first_series(folder)
    path.write_bytes(path.read_bytes()[:length])
    (difference,) = verify_run(folder).differences
    assert difference == "series/python-kafka-100B-1ms-000.parquet: is not as it was measured: its checksum differs"


@pytest.mark.parametrize("name", ["series/x.parquet", "latency/python-kafka-100B-1ms-000-due.hgrm"])
def test_a_foreign_file_is_found(folder: Path, name: str) -> None:
    """Nothing of the run names it."""
    (folder / name).write_text("")
    assert verify_run(folder).differences == (f"{name}: is of no trial in trials.jsonl",)


def test_a_cell_of_another_scenario_is_found(folder: Path) -> None:
    """The scenario has no such cell, and the journal no trial of it."""
    edit_results(folder, message_bytes=77)
    assert "cells.json: python-kafka-77B-1ms is no cell of the scenario" in verify_run(folder).differences


@pytest.mark.parametrize("name", ["trials.jsonl", "cells.json"])
def test_a_changed_name_of_the_checksum_is_found(folder: Path, name: str) -> None:
    """A record without a checksum is not taken for one of an older version while others have theirs."""
    edit(folder / name, lambda text: text.replace('"checksum"', '"checksun"', 1))
    assert any(text.startswith(name) and "no checksum" in text for text in verify_run(folder).differences)


def test_a_run_of_an_older_version_says_what_it_lacks(folder: Path) -> None:
    """It has neither checksums nor the inputs of its searches."""
    lines = [json.loads(line) for line in read_trials_of(folder)]
    bare = [json.dumps({name: line[name] for name in ("format", "cell", "measurement")}) for line in lines]
    (folder / "trials.jsonl").write_text("\n".join([*bare, ""]))
    cells = json.loads((folder / "cells.json").read_text())
    (folder / "cells.json").write_text(json.dumps({name: cells[name] for name in ("format", "cells")}))
    found = verify_run(folder)
    assert found.differences == ()
    assert f"{len(lines)} of {len(lines)} trials have no checksums: an older version" in found.unchecked
    assert sum("the inputs of its search are unknown" in text for text in found.unchecked) == 4
    first_series(folder).unlink()
    assert verify_run(folder).differences == ("series/python-kafka-100B-1ms-000.parquet: is missing",)


def test_a_run_of_format_1_says_what_it_lacks() -> None:
    """The part that can be read has no difference."""
    found = verify_run(FORMAT_1)
    assert found.differences == ()
    assert found.unchecked[0] == "the run is of format 1, which has no checksums"


def test_a_cell_that_failed_otherwise_is_not_computed_again(folder: Path) -> None:
    """A broker that was not there leaves no trial of it."""
    edit_results(
        folder,
        **dict.fromkeys(("estimate_hz", "low_hz", "high_hz", "confirmed_hz")), status="failed", reason="gone", trials=0,
    )  # fmt: skip
    found = verify_run(folder)
    assert found.differences == ()
    assert found.unchecked == ("python-kafka-100B-1ms: failed before its search had an answer (gone)",)


@pytest.mark.parametrize("trials", [1, 7])
def test_an_interrupted_run_is_verified_and_gone_on_with(tmp_path: Path, trials: int) -> None:
    """It was killed between a series file and its line, or within it: the file is foreign until the run goes on."""

    def kill(event: object) -> None:
        nonlocal trials
        trials -= isinstance(event, TrialFinished)
        if trials == 0:
            raise KeyboardInterrupt

    first = RunFolder.create(tmp_path, "killed")
    with pytest.raises(KeyboardInterrupt):
        run_simulated(SMALL, Site(), first, notify=kill)
    assert not is_running(first.folder)
    lines = (first.folder / "trials.jsonl").read_bytes().splitlines(keepends=True)
    (first.folder / "trials.jsonl").write_bytes(b"".join(lines[:-1]) + lines[-1][:50])
    (difference,) = verify_run(first.folder).differences
    assert difference.endswith("is of no trial in trials.jsonl")
    run_simulated(SMALL, Site(), RunFolder(first.folder))
    found = verify_run(first.folder)
    assert (found.cells, found.differences, found.unchecked) == (6, (), ())


def test_a_report_is_told_of_differences(folder: Path) -> None:
    """The text is one line that names the first of them; it is empty for a run without any."""
    assert summary_text(check_run(folder)) == ""
    edit_results(folder, estimate_hz=5000.0)
    first_series(folder).unlink()
    said = summary_text(check_run(folder))
    assert said.startswith("the files of this run do not agree with its results: series/python-kafka-100B-1ms-000")


def test_a_report_does_not_blame_a_run_for_a_newer_search(folder: Path) -> None:
    """Another revision may give another result from the same trials: `bench verify` tells, a report does not."""
    edit_results(folder, estimate_hz=5000.0)
    edit(folder / "run.json", lambda text: text.replace('"revision": "', '"revision": "x'))
    assert check_run(folder) == ()
    found = verify_run(folder)
    assert len(found.differences) == 1
    assert "differing results may come from that" in found.unchecked[-1]


def test_an_impossible_trial_fails_its_cell_again(tmp_path: Path) -> None:
    """The same failure follows from the trials; there is no result that could be forged."""
    scenario = replace(SMALL, systems=("python/kafka",), latency=LatencyTrials())
    folder = make_simulated_run(tmp_path / "run", scenario, change=lambda measured: replace(measured, negative=1))
    assert {result.status for result in read_results(folder)} == {"failed"}
    found = verify_run(folder)
    assert (found.cells, found.differences, found.unchecked) == (2, (), ())
