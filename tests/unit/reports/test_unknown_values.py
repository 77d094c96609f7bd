"""What a report says of cells without an answer, of bounds and of services elsewhere: no more than is known."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from msgspec.structs import replace
from sample_runs import QUICK, a_run, result_of, seen

from bench.analysis.comparison import claim_text
from bench.analysis.verdict import Verdict
from bench.config.site import Site
from bench.model.cell import Cell
from frameworks.spark.site import SparkSite
from producers.kafka.site import KafkaSite
from reports.data.bottleneck import limit_of
from reports.data.derived import Bound, bound_of, used_cores
from reports.data.run_data import CellData, JudgedTrial, read_run_data
from reports.data.winners import contest_of, finding_of
from reports.figures.latency import curves_of, latency_trials
from reports.formats.csv_table import lines_of

FAST, SLOW = Cell("python", "kafka", 1000, 0.01), Cell("spark", "kafka", 1000, 0.01)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of the quick scenario."""
    return a_run(tmp_path_factory.mktemp("certain") / "run", QUICK, unfinished=())


def measured(cell, rate=100.0):
    return CellData(cell, result_of(cell, "measured", estimate_hz=rate, low_hz=0.97 * rate, high_hz=1.03 * rate), ())


def failed(cell, reason):
    return CellData(cell, replace(result_of(cell, "failed"), reason=reason), ())


@pytest.mark.parametrize(
    ("reason", "complete"),
    [
        ("no valid trial: other work took 30% of this machine", False),
        ("kafka at 10.0.0.1:9092: no connection", False),
        ("impossible: 300 /s sustained, but theory allows 200 /s (cpu)", False),
        ("the framework died 2 times: out of memory", True),
    ],
)
def test_only_a_system_that_died_is_beaten(reason, complete):
    """A cell that failed for another reason says nothing of its system."""
    contest = contest_of(1000, 0.01, [measured(FAST), failed(SLOW, reason)])
    assert contest.leaders == (FAST.system,)
    assert contest.complete is complete


def test_points_without_every_answer_are_not_counted_as_won(run):
    """The finding says at how many of all points somebody wins, and at how many it is open."""
    run_data = read_run_data(run)
    point = (run_data.sizes[0], run_data.costs[0])
    cells = tuple(
        replace(known, result=replace(known.result, status="failed", reason="no valid trial: generator"))
        if (known.cell.message_bytes, known.cell.cpu_seconds) == point and known.cell.system == run_data.systems[0]
        else known
        for known in run_data.cells
    )
    said = finding_of(replace(run_data, cells=cells))
    assert "at all" not in said
    assert "At 1 some system has no answer yet." in said or "At no point" in said


def test_the_bound_is_the_one_that_the_result_was_held_against(run):
    """Also where the load had a core of its own, or a source puts each byte on the link twice."""
    run_data = read_run_data(run)
    known = measured(FAST)
    bounded = replace(known, result=replace(known.result, bound="network", bound_hz=150.0))
    assert bound_of(run_data, bounded) == Bound("network", 150.0)
    own = replace(run_data.record, scenario=replace(QUICK, load=replace(QUICK.load, cores=1)))
    unbounded = replace(known, result=replace(known.result, bound=None, bound_hz=None))
    assert bound_of(replace(run_data, record=own), unbounded) == Bound("cpu", 100.0)


def test_bounds_keep_their_sign(run):
    """In every column that follows from the rate, and where runs are compared."""
    run_data = read_run_data(run)
    for line, known in zip(lines_of(run_data), run_data.cells, strict=True):
        if known.result is not None and known.result.status == "lower-bound":
            assert line.volume.startswith("≥ ")
            assert claim_text(known.result).startswith("≥ ")


def test_the_cpu_of_what_stands_elsewhere_is_not_known(run):
    """Neither as the framework's nor as a limit: only a client of it runs on this machine."""
    busy = {
        "framework": 3.0,
        "source": 0.0,
        "load": 2.0,
        "harness": 1.0,
        "busy": 6.0,
        "seconds": 10.0,
        "available": 20.0,
    }
    sites = [
        Site(cores=16, sections={"spark": SparkSite("spark://h:7077")}),
        Site(sections={"kafka": KafkaSite("h:9092")}),
    ]
    for site in sites:
        run_data = read_run_data(run)
        trial = JudgedTrial(seen(1, 120.0, 100.0, cpu=_of(site, busy)), Verdict("overloaded", "backlog grew", 0.1))
        known = replace(measured(SLOW), trials=(trial,))
        limit = limit_of(replace(run_data, record=replace(run_data.record, site=site)), known)
        assert limit is None or limit.kind in ("not known", "the work")
        sustained = replace(known, trials=(JudgedTrial(trial.seen, Verdict("sustained")),))
        assert used_cores(sustained) is None


def test_latencies_of_a_load_that_was_late_are_not_drawn(run):
    """An invalid trial says nothing of the system; an overloaded one says that it was."""
    run_data = read_run_data(run)
    trials = [
        JudgedTrial(seen(n, 95.0, 95.0, "latency"), Verdict(word, ""))
        for n, word in enumerate(("invalid", "overloaded"))
    ]
    known = replace(measured(SLOW), trials=tuple(trials))
    assert latency_trials(known) == trials[1:]
    (curve,) = curves_of(run_data, known)
    assert "overloaded" in curve.title


def _of(site, cpu):
    """What is left of accounts when roles that stand elsewhere are taken out."""
    gone = {"framework"} if site.sections.get("spark") is not None else {"source"}
    return {role: value for role, value in cpu.items() if role not in gone}


@pytest.mark.parametrize(
    ("high", "leaders"),
    [(44.0, ("python/kafka",)), (60.0, ("python/kafka", "spark/kafka")), (900.0, ("python/kafka", "spark/kafka"))],
)
def test_a_cell_that_is_sustained_only_sometimes_wins_nothing(high, leaders):
    """It may be as good as the best where twice its interval's end comes near."""
    unstable = CellData(SLOW, result_of(SLOW, "unstable", estimate_hz=0.9 * high, low_hz=0.8 * high, high_hz=high), ())
    assert contest_of(1000, 0.01, [measured(FAST), unstable]).leaders == leaders
    assert contest_of(1000, 0.01, [unstable]).leaders == ()
