"""The display of a run says which visit it is, what is left of the total, and what a new result replaces."""

import io
from typing import Any

from rich.console import Console
from sample_runs import QUICK, make_result

from bench.cli.terminal import Lines, Screen
from bench.runner.progress import CellFinished, CellStarted

CELL = QUICK.cells()[1]


def lines_of(*events: CellStarted | CellFinished) -> list[str]:
    """Return the lines that are printed for events."""
    out = io.StringIO()
    show = Lines(Console(file=out, width=200, highlight=False))
    for event in events:
        show(event)
    return out.getvalue().splitlines()


def drawn(started: CellStarted, **result: Any) -> str:
    """Return the live display during a visit, after a finished one where there is a result."""
    out = io.StringIO()
    console = Console(file=out, width=200, highlight=False)
    screen = Screen(console, started.total)
    if result:
        screen(CellFinished(make_result(CELL, **result)))
    screen(started)
    console.print(screen)
    return out.getvalue()


def test_a_line_of_a_file_is_not_cut() -> None:
    """It is searched for."""
    out, long = io.StringIO(), "a long reason " * 20
    Lines(Console(file=out, width=80, highlight=False))(CellFinished(make_result(CELL, "failed", reason=long)))
    assert len(out.getvalue().splitlines()) == 1


def test_a_first_visit_without_a_total_is_only_its_cell() -> None:
    """Nothing else would be news."""
    assert lines_of(CellStarted(CELL, 2, 24)) == ["[2/24] spark/tcp  10 kB  0 ms"]


def test_a_later_visit_tells_its_number_and_the_time_left() -> None:
    """The number counts the visits of the cell."""
    started = CellStarted(CELL, 2, 24, visit=3, done=24, left_s=45.2, total_s=600.0)
    assert lines_of(started) == ["[2/24] spark/tcp  10 kB  0 ms  (visit 3, 45 s left)"]


def test_a_visit_with_more_senders_tells_how_many() -> None:
    """They are why the cell is visited again."""
    started = CellStarted(CELL, 2, 24, visit=2, done=24, workers=4)
    assert lines_of(started) == ["[2/24] spark/tcp  10 kB  0 ms  (visit 2, 4 senders)"]


def test_a_new_result_tells_what_it_replaces() -> None:
    """Only where something has changed."""
    earlier = make_result(CELL, low_hz=1e3, high_hz=4e3)
    (line,) = lines_of(CellFinished(make_result(CELL), 2, earlier))
    assert line.endswith("; was [1 k/s .. 4 k/s]")
    (line,) = lines_of(CellFinished(earlier, 2, earlier))
    assert "was" not in line
    (line,) = lines_of(CellFinished(earlier, 2, make_result(CELL, "failed")))
    assert line.endswith("; was failed")


def test_the_live_display_counts_down_the_total() -> None:
    """Also in a resumed run: its cells have results already."""
    text = drawn(CellStarted(CELL, 2, 24, visit=2, done=24, left_s=120.0, total_s=600.0))
    assert "24 of 24 cells" in text
    assert "2 min of 10 min left" in text


def test_the_live_display_estimates_the_rest_without_a_total() -> None:
    """From the mean time of a cell."""
    text = drawn(CellStarted(CELL, 2, 24, done=1), status="measured")
    assert "1 of 24 cells" in text
    assert "left" in text
