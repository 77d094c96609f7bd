"""What limits a cell is told from what its trials saw, and not guessed."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from msgspec.structs import replace
from sample_runs import QUICK, result_of, seen

from bench.analysis.verdict import Verdict
from bench.config.scenario import LoadSettings
from bench.config.site import KafkaSite, Site
from bench.model.cell import Cell
from bench.model.measurement import Bound, Measurement, Planned, Result, Series
from bench.storage.run_folder import RunRecord
from bench.units import Bandwidth
from reports.data.bottleneck import limit_of
from reports.data.heatmap_kinds import cpu_words
from reports.data.log_excerpt import Logs
from reports.data.posterior_curve import belief_of
from reports.data.run_data import CellData, JudgedTrial, RunData
from reports.figures.rate_curves import curves_of

FREE = Cell("spark", "kafka", 10_000, 0.0)
DEAR = Cell("spark", "kafka", 10_000, 0.01)
IDLE = {"framework": 4.0, "source": 0.5, "load": 0.5, "busy": 5.5, "seconds": 10.0, "available": 20.0}


def run_data(**site: Any) -> RunData:
    return RunData(Path(), RunRecord(1, QUICK, Site(**site), {"cores": 2}, "2026-05-04T10:00:00Z"), ())


def known(
    cell: Cell, trial: Measurement, why: str = "backlog grew", word: Any = "overloaded", **result: Any
) -> CellData:
    """A cell at 100 /s with one trial above it."""
    rates = {"estimate_hz": 100.0, "low_hz": 97.0, "high_hz": 103.0}
    found: Result = result_of(cell, result.pop("status", "measured"), **(rates | result))
    return CellData(cell, found, (JudgedTrial(trial, Verdict(word, why, 0.1)),))


def overloaded(batch: float = 0.0, **said: Any) -> Measurement:
    return seen(1, 120.0, 100.0, "search", batch, **said)


@pytest.mark.parametrize(
    ("cpu", "kind"),
    [
        ({"framework": 15.0, "source": 3.0, "load": 1.0, "busy": 19.5}, "framework CPU"),
        ({"framework": 5.0, "source": 12.0, "load": 1.0, "busy": 19.0}, "broker CPU"),
        ({"framework": 6.0, "source": 1.0, "load": 12.0, "busy": 19.5}, "shared CPU"),
        ({"framework": 10.0, "source": 0.2, "load": 1.0, "busy": 12.0}, "one thread"),
        ({"framework": 4.0, "source": 0.2, "load": 1.0, "busy": 6.0}, "not known"),
    ],
    ids=["framework", "broker", "generator", "one thread", "nobody"],
)
def test_the_accounts_of_the_cpu_say_who_is_busy(cpu: dict[str, float], kind: str) -> None:
    """In the trial just above the top rate; the evidence has the figures."""
    limit = limit_of(run_data(), known(FREE, overloaded(cpu=cpu | {"seconds": 10.0, "available": 20.0})))
    assert limit is not None
    assert limit.kind == kind
    assert f"framework {cpu['framework'] / 10:.2f}" in limit.evidence


def test_a_rate_near_the_bound_is_limited_by_the_work_itself() -> None:
    """Whatever the cores did."""
    limit = limit_of(run_data(), known(DEAR, overloaded(), estimate_hz=190.0))
    assert limit is not None
    assert (limit.kind, "95%" in limit.evidence) == ("the work", True)


@pytest.mark.parametrize(("name", "kind"), [("disk", "disk"), ("network", "network")])
def test_a_rate_near_a_bound_of_the_source_is_limited_by_it(name: str, kind: str) -> None:
    """With the share of it that was reached; one that lies far above is nobody's limit."""
    near, far = Bound(name, 105.0, hard=False), Bound(name, 400.0, hard=False)
    limit = limit_of(run_data(), known(FREE, overloaded(cpu=IDLE), soft_bounds=(near,)))
    assert limit is not None
    assert (limit.kind, "95%" in limit.evidence) == (kind, True)
    limit = limit_of(run_data(), known(FREE, overloaded(cpu=IDLE), soft_bounds=(far,)))
    assert limit is not None
    assert limit.kind == "not known"


def test_the_bounds_of_each_source_are_drawn_over_the_sizes() -> None:
    """Once, whichever systems read it; a source without one has none."""
    sizes, bounds = (10_000, 1_000_000), {"kafka": (Bound("disk", 900.0, hard=False),), "tcp": ()}
    cells = [
        Cell(framework, source, size, 0.0) for framework in ("plain", "spark") for source in bounds for size in sizes
    ]
    seen = tuple(CellData(cell, result_of(cell, soft_bounds=bounds[cell.source]), ()) for cell in cells)
    found = curves_of(replace(run_data(), cells=seen), 0.0)
    assert found.bounds == (("kafka’s disk", ((10_000, 900.0), (1_000_000, 900.0))),)


def test_a_full_link_is_the_limit() -> None:
    """Where the site names its bandwidth."""
    limit = limit_of(
        run_data(bandwidth=Bandwidth(1.05e6), kafka=KafkaSite("h:9092")), known(FREE, overloaded(cpu=IDLE))
    )
    assert limit is not None
    assert limit.kind == "network"


@pytest.mark.parametrize(
    ("site", "usage", "kind", "figures"),
    [
        ({}, {"framework": {"gc_seconds": 4.0}}, "garbage", "for 40% of the time"),
        ({}, {"source": {"gc_seconds": 1.0, "written_bytes": 1e12}}, "not known", ""),
        (
            {"bandwidth": Bandwidth(125e6)},
            {"source": {"link_sent_bytes": 1.2e9, "link_received_bytes": 3e8}, "framework": {"sent_bytes": 9e9}},
            "network",
            "120 MB/s of 125 MB/s",
        ),
        (
            {"disk": Bandwidth(1e8)},
            {"source": {"read_bytes": 3e8, "written_bytes": 6e8}},
            "disk",
            "90 MB/s of 100 MB/s",
        ),
    ],
    ids=["garbage", "neither", "network", "disk"],
)
def test_what_a_probe_saw_at_its_limit_is_the_limit(site: Any, usage: Any, kind: str, figures: str) -> None:
    """Garbage collection anywhere; network and disk where the site says what they can do."""
    limit = limit_of(run_data(**site), known(FREE, overloaded(cpu=IDLE, usage=usage)))
    assert limit is not None
    assert limit.kind == kind
    assert figures in limit.evidence


@pytest.mark.parametrize(
    ("scenario", "cpu", "sentence"),
    [
        ({"settings": {"spark": {"cores": 2}}}, {"framework": 19.0, "busy": 25.0},
         "The framework uses all of the 2 cores it was given."),
        ({"load": LoadSettings(cores=6)}, {"framework": 14.0, "source": 5.0, "busy": 30.0}, "All cores are busy, most with the framework."),
        ({"load": LoadSettings(cores=7)}, {"framework": 9.5, "source": 0.2, "busy": 20.0}, "All cores are busy, most with the framework."),
    ],
    ids=["settings", "pinned", "one core left"],
)  # fmt: skip
def test_a_framework_that_uses_what_it_was_given_is_limited_by_that(scenario: Any, cpu: Any, sentence: str) -> None:
    """However many cores of the machine are free: they were not for it."""
    run = RunRecord(1, replace(QUICK, **scenario), Site(), {"cores": 8}, "2026-05-04T10:00:00Z")
    usage = {"source": 0.5, "load": 0.5, "seconds": 10.0, "available": 80.0} | cpu
    limit = limit_of(RunData(Path(), run, ()), known(FREE, overloaded(1.0, cpu=usage)))
    assert limit is not None
    assert (limit.kind, limit.sentence) == ("framework CPU", sentence)


def test_a_trial_below_the_rate_says_nothing_of_its_limit() -> None:
    """A cold system's, say, that was too much for it."""
    busy = {"framework": 19.0, "source": 0.5, "load": 0.5, "busy": 20.0, "seconds": 10.0, "available": 20.0}
    cached_resource, cold = seen(2, 100.0, 100.0, "confirm"), seen(1, 60.0, 40.0, "search", cpu=busy)
    found = result_of(FREE, "lower-bound", reason="highest", estimate_hz=100.0, low_hz=100.0, confirmed_hz=100.0)
    trials = (
        JudgedTrial(cold, Verdict("overloaded", "backlog grew", 0.3)),
        JudgedTrial(cached_resource, Verdict("sustained")),
    )
    limit = limit_of(run_data(), CellData(FREE, found, trials))
    assert limit is not None
    assert limit.sentence == "It sustained the highest rate that the scenario asks for."


def test_a_late_generator_is_named_with_its_lateness() -> None:
    """And the source is cleared of it."""
    late = seen(1, 500.0, 500.0, late=1.2, blocked=0.0)
    limit = limit_of(run_data(), known(FREE, late, "generator", "invalid", status="lower-bound", reason="generator"))
    assert limit is not None
    assert limit.kind == "generator"
    assert "1.2 s late; the source refused for 0 ms" in limit.evidence


def test_batches_that_outlast_their_interval_with_idle_cores_are_the_limit() -> None:
    """What a batch costs, not the CPU."""
    at = [2.0 * n for n in range(1, 7)]
    counts = [240 * n for n in range(1, 7)]
    series = Series(at, counts, counts, [200 * n for n in range(1, 7)])
    limit = limit_of(run_data(), known(FREE, overloaded(1.0, series=series, cpu=IDLE)))
    assert limit is not None
    assert limit.kind == "batches"


def test_a_source_that_refuses_while_cores_are_idle_is_the_limit() -> None:
    """Back-pressure without work."""
    limit = limit_of(run_data(), known(FREE, overloaded(blocked=6.0, cpu=IDLE), "the source pushed back"))
    assert limit is not None
    assert limit.kind == "source"


@pytest.mark.parametrize(
    ("said", "why", "kind"),
    [({"ended": "framework died", "note": "out of memory"}, "", "died"), ({}, "p99 3 s above 2 s", "latency")],
    ids=["died", "latency"],
)
def test_what_the_judge_named_is_the_limit(said: dict[str, Any], why: str, kind: str) -> None:
    """A death, or a latency that was asked for."""
    limit = limit_of(run_data(), known(FREE, overloaded(**said), why))
    assert limit is not None
    assert limit.kind == kind


@pytest.mark.parametrize("status", ["failed", "unsupported"])
def test_a_cell_without_a_rate_has_no_limit(status: str) -> None:
    """Its reason is said elsewhere."""
    assert limit_of(run_data(), known(FREE, overloaded(), status=status)) is None


def test_more_useful_cpu_than_was_used_is_impossible() -> None:
    """It is called that, and drawn without a colour."""
    trial = seen(5, 180.0, 200.0, "confirm", cpu={"framework": 10.0, "source": 0.0, "seconds": 10.0})
    value, claim, _ = cpu_words(run_data(), known(DEAR, trial, "", "sustained", confirmed_hz=180.0))
    assert (value, claim) == (None, "impossible")


def test_the_belief_lies_where_trials_put_it() -> None:
    """Between the highest sustained rate and the lowest overloaded one."""
    trials = (
        JudgedTrial(seen(1, 95.0, 100.0), Verdict("sustained")),
        JudgedTrial(seen(2, 130.0, 100.0), Verdict("overloaded", "backlog grew", 0.23)),
    )
    belief = belief_of(CellData(FREE, result_of(FREE, estimate_hz=100.0), trials), QUICK.search)
    assert belief is not None
    (sustained,), (over,) = belief.sustained, belief.overloaded
    assert belief.interval[0] < (sustained + over) / 2 < belief.interval[1]


def test_a_log_s_tail_is_of_the_cell_s_own_time(tmp_path: Path) -> None:
    """Lines of other cells are left out, and a line without a time goes with the one before."""
    (tmp_path / "logs").mkdir()
    lines = [
        "26/05/04 09:00:00 WARN early",
        "26/05/04 10:00:05 WARN mine",
        "\tat Some.java",
        "26/05/04 12:00:00 WARN late",
        "\x1b[0m",
    ]
    (tmp_path / "logs" / "spark.log").write_text("\n".join(lines))
    planned = Planned(0, 1.0, 1.0, 1.0, "search")
    trial = JudgedTrial(replace(overloaded(), planned=planned), Verdict("sustained"))
    (tail,) = Logs(tmp_path).of(CellData(FREE, None, (trial,)))
    assert (tail.file, tail.text) == ("spark.log", "26/05/04 10:00:05 WARN mine\n\tat Some.java")
