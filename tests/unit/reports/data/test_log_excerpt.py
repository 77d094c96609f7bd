"""An excerpt of a log has the lines of one cell."""

from pathlib import Path

from sample_runs import make_measurement

from bench.analysis.verdict import Verdict
from bench.model.cell import Cell
from bench.model.measurement import PlannedTrial
from reports.data.log_excerpt import Logs
from reports.data.run_data import CellData, JudgedTrial


def test_a_log_excerpt_has_the_lines_of_the_cell_s_time(tmp_path: Path) -> None:
    """Lines of other cells are left out, and a line without a time belongs to the one before."""
    (tmp_path / "logs").mkdir()
    lines = [
        "26/05/04 09:00:00 WARN early",
        "26/05/04 10:00:05 WARN mine",
        "\tat Some.java",
        "26/05/04 12:00:00 WARN late",
        "\x1b[0m",
    ]
    (tmp_path / "logs" / "spark.log").write_text("\n".join(lines))
    planned = PlannedTrial(0, 1.0, 1.0, 1.0, "search")
    trial = JudgedTrial(make_measurement(0, 1.0, 1.0, planned=planned), Verdict("sustained"))
    (excerpt,) = Logs(tmp_path).find_excerpts(CellData(Cell("spark", "kafka", 10_000, 0.0), None, (trial,)))
    assert (excerpt.file, excerpt.text) == ("spark.log", "26/05/04 10:00:05 WARN mine\n\tat Some.java")
