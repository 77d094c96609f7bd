"""COST is the number of cores with which a system certainly outdoes one plain process."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from sample_runs import make_result, open_run_folder

from bench.analysis.comparison import Decision
from bench.config.scenario import Grid, Scenario
from bench.model.cell import Cell
from bench.model.message_sizes import MessageSize
from bench.units import Seconds
from reports.data.cost import describe_cost, make_cost_table
from reports.data.run_data import RunData, read_run_data
from reports.formats import comparison, html_page, pdf

SIZES = (100, 10_000)


def make_run(
    folder: Path, cores: int, rates: dict[str, float], *, sizes: tuple[int, ...] = SIZES, remark: str | None = None
) -> RunData:
    """Return a run on two cores in which systems had so many of them; a rate of 0 is a cell that is unsupported."""
    settings = {"spark": {"cores": cores}, "python": {"processes": cores}}
    grid = Grid(tuple(map(MessageSize, sizes)), (Seconds(0),))
    scenario = Scenario("cost", tuple(rates), grid, settings=settings)
    with open_run_folder(folder, scenario) as store:
        for cell in scenario.cells():
            rate = rates[cell.system]
            ends = {"estimate_hz": rate, "low_hz": 0.97 * rate, "high_hz": 1.03 * rate, "remark": remark}
            store.save_result(cell, make_result(cell, **ends) if rate else make_result(cell, "unsupported"))
    return read_run_data(folder)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({1: "faster", 2: "faster"}, "1"),
        ({1: "slower", 2: "faster"}, "2"),
        ({1: "undecided", 2: "faster"}, "at most 2"),
        ({2: "faster"}, "at most 2"),
        ({1: "slower", 2: "undecided", 4: "faster"}, "2 to 4"),
        ({1: "slower", 2: "slower"}, "more than 2"),
        ({1: "slower", 2: "undecided"}, "more than 1"),
        ({1: "undecided", 2: "not compared"}, "open"),
        ({1: "faster", 2: "slower"}, "1"),
        ({}, ""),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_cores_are_named_as_far_as_they_are_certain(words: dict[int, Decision], text: str) -> None:
    """Between the most with which the system is slower and the fewest with which it is faster."""
    assert describe_cost(words) == text


def test_two_runs_tell_the_cores_that_a_system_needs(tmp_path: Path) -> None:
    """The plain process is that of the run in which it had one core; it stays out of the columns."""
    runs = [
        make_run(tmp_path / "one", 1, {"spark/kafka": 60.0, "python/kafka": 100.0}),
        make_run(tmp_path / "two", 2, {"spark/kafka": 120.0, "python/kafka": 200.0}),
    ]
    table = make_cost_table(runs)
    assert table is not None
    assert table.systems == ("spark/kafka",)
    assert [(row.size, row.plain, row.cores) for row in table.rows] == [
        ("100 B", "python/kafka 100 /s", ("2",)),
        ("10 kB", "python/kafka 100 /s", ("2",)),
    ]
    assert "spark/kafka 2 at 2 points" in table.summary


def test_one_run_tells_whether_its_cores_are_enough(tmp_path: Path) -> None:
    """Where the plain process has one core and the system two."""
    rates = {"spark/kafka": 120.0, "spark/tcp": 50.0, "spark/files": 0.0, "python/kafka": 100.0}
    one = make_run(tmp_path / "run", 1, rates)
    scenario = replace(one.record.scenario, settings={"python": {"processes": 1}})
    table = make_cost_table([replace(one, record=replace(one.record, scenario=scenario))])
    assert table is not None
    assert table.systems == ("spark/kafka", "spark/tcp")
    assert {row.cores for row in table.rows} == {("at most 2", "more than 2")}


def test_the_same_source_is_compared_where_it_was_measured(tmp_path: Path) -> None:
    """Otherwise the fastest plain process at the point."""
    rates = {"spark/kafka": 70.0, "spark/tcp": 70.0, "python/kafka": 50.0, "python/pulsar": 100.0}
    table = make_cost_table([make_run(tmp_path / "run", 1, rates)])
    assert table is not None
    found = dict(zip(table.systems, table.rows[0].cores, strict=True))
    assert found == {"spark/kafka": "1", "spark/tcp": "more than 1"}


@pytest.mark.parametrize(
    ("cores", "rates"),
    [(2, {"spark/kafka": 60.0, "python/kafka": 100.0}), (1, {"spark/kafka": 60.0}), (1, {"python/kafka": 60.0})],
    ids=["all cores", "no plain process", "nothing else"],
)
def test_without_one_plain_process_there_is_no_table(tmp_path: Path, cores: int, rates: dict[str, float]) -> None:
    """Nothing is guessed."""
    assert make_cost_table([make_run(tmp_path / "run", cores, rates)]) is None


def test_a_point_that_only_one_of_them_has_is_left_out(tmp_path: Path) -> None:
    """A size that the plain process did not read has no row."""
    one = make_run(tmp_path / "one", 1, {"python/kafka": 100.0}, sizes=(100,))
    two = make_run(tmp_path / "two", 2, {"spark/kafka": 120.0})
    table = make_cost_table([one, two])
    assert table is not None
    assert [row.size for row in table.rows] == ["100 B"]


def test_reports_show_the_table_and_remarks(tmp_path: Path) -> None:
    """The page and the PDF of a run, and the page of several."""
    remark = "The program did <not> report it."
    for cores, name in ((1, "one"), (2, "two")):
        make_run(tmp_path / name, cores, {"spark/kafka": 60.0 * cores, "python/kafka": 100.0 * cores}, remark=remark)
    (page,) = html_page.write(tmp_path / "one")
    text = page.read_text(encoding="utf-8")
    assert text.count('<section id="cost">') == 1
    assert "spark/kafka, python/kafka: The program did &lt;not&gt; report it." in text
    assert pdf.write(tmp_path / "one")[0].stat().st_size > 0
    several = comparison.write([tmp_path / "one", tmp_path / "two"], tmp_path)
    assert "spark/kafka 2 at 2 points" in several.read_text(encoding="utf-8")


def test_a_cell_of_a_framework_that_is_not_installed_is_compared(tmp_path: Path) -> None:
    """An old run can be reported."""
    one = make_run(tmp_path / "run", 1, {"python/kafka": 100.0, "gone/kafka": 250.0})
    table = make_cost_table([one])
    assert table is not None
    assert table.systems == ("gone/kafka",)
    assert Cell("gone", "kafka", 100, 0.0) in {cell_data.cell for cell_data in one.cells}
