"""`bench verify`, `bench report` and `bench compare` say where a run's files do not agree with its results."""

import shutil
from pathlib import Path

import pytest
from simulated_runs import SCENARIO, make_simulated_run

from bench.cli.compare import compare
from bench.cli.report import report
from bench.cli.verify import _progress, verify
from bench.config.scenario import Grid
from bench.errors import UsageError
from bench.model.message_sizes import MessageSize
from bench.storage.folder_lock import lock_run_folder
from bench.units import Seconds

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")
typer = pytest.importorskip("typer")

SMALL = SCENARIO.__class__(
    "small", ("python/kafka",), Grid((MessageSize(100), MessageSize(1000)), (Seconds(0.001),)), search=SCENARIO.search
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_simulated_run(tmp_path_factory.mktemp("verify") / "run", SMALL)


@pytest.fixture
def damaged(kept: Path, tmp_path: Path) -> Path:
    """Return a copy of the run without its first series file."""
    folder = Path(shutil.copytree(kept, tmp_path / "damaged"))
    min((folder / "series").iterdir()).unlink()
    return folder


def exit_code(verb: object, *arguments: object, **options: object) -> int:
    with pytest.raises(typer.Exit) as ending:
        verb(*arguments, **options)  # type: ignore[operator]
    return int(ending.value.exit_code)


def test_a_run_without_differences_ends_with_0(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line sums it up."""
    assert exit_code(verify, [kept]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("2 results computed again: no difference")


def test_a_difference_ends_with_4(kept: Path, damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has a line, and what it keeps from being checked, too; the other run is verified as well."""
    assert exit_code(verify, [damaged, kept]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "differs      series/python-kafka-100B-1ms-000.parquet: is missing"
    assert lines[1].startswith("not checked  python-kafka-100B-1ms: its result is not computed again")
    assert [line.rsplit(": ", 1)[-1] for line in lines[2:]] == ["1 difference", "no difference"]


def test_a_run_that_goes_on_is_not_verified(damaged: Path) -> None:
    """Its harness has locked it."""
    lock = lock_run_folder(damaged)
    assert lock is not None
    with lock, pytest.raises(UsageError, match="is running; verify it when it has ended"):
        verify([damaged])


def test_a_long_verification_shows_its_progress(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every two seconds; here the clock is moved."""
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    notify = _progress(kept)
    for number in range(1, 6):
        now += 1.0
        notify(number, 9)
    assert capsys.readouterr().err.splitlines() == [f"{kept}: {done} of 9 cells" for done in (2, 4)]


def test_a_report_of_a_damaged_run_says_so(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On top of the page, and on the terminal; the cell is shown without its trial."""
    report([damaged], formats="html,pdf")
    assert "do not agree with its results: series/python-kafka-100B-1ms-000.parquet" in capsys.readouterr().err
    page = (damaged / "report.html").read_text(encoding="utf-8")
    assert "<strong>Do not rely on this page:</strong> the files of this run do not agree with its results" in page
    assert "its files are not as they were measured" in page
    assert (damaged / "report.pdf").stat().st_size > 0


def test_a_report_of_an_intact_run_says_nothing(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody is alarmed."""
    report([kept], formats="html")
    assert capsys.readouterr().err == ""
    assert "Do not rely on" not in (kept / "report.html").read_text(encoding="utf-8")


def test_a_comparison_with_a_damaged_run_says_so(
    kept: Path, damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table and the page both name the run."""
    assert exit_code(compare, kept, damaged) == 0
    assert capsys.readouterr().err.startswith(f"warning: {damaged}: the files of this run do not agree")
    report([kept, damaged], out=tmp_path)
    page = next(tmp_path.glob("compare-*.html")).read_text(encoding="utf-8")
    assert "Do not rely on damaged:" in page
    assert "Do not rely on run:" not in page
