"""What stands for long: its memory, files and disks are judged by rules; a short one runs; eight simulated hours."""

import os

import pytest

from bench.config.scenario import Grid, Scenario, Search
from bench.config.site import Site
from bench.model.message_sizes import MessageSize
from bench.storage.run_folder import RunFolder
from bench.units import Seconds, Share
from tests.campaign.outcomes import StandingRecord, summary, violations_of
from tests.campaign.standing import MORE_BYTES, Sample, Standing, judge, private_bytes
from tests.simulated_runs import run_simulated

MIB = 2**20
HOUR_S = 3600


def hourly(size, descriptors=lambda _: 10):
    """Return samples of an hour, one a minute."""
    return [Sample(60.0 * minute, int(size(minute)), descriptors(minute)) for minute in range(61)]


def test_what_stays_flat_is_no_violation():
    """The first quarter is the start; noise within the tolerance is none."""
    record = judge("PE", hourly(lambda minute: (20 + min(minute, 10) + minute % 3) * MIB), HOUR_S)
    assert (record.violations, record.seconds, record.descriptors_after) == ((), HOUR_S, 10)


@pytest.mark.parametrize(
    ("heap", "violations"), [(None, ("JVM grew from 421 to 872 MiB",)), (512 * MIB, ()), (128 * MIB, ("JVM grew",))]
)
def test_memory_that_grows_is_a_violation_unless_it_is_a_heap(heap, violations):
    """A JVM may fill its heap at any time."""
    record = judge("JVM", hourly(lambda minute: (100 + 14.57 * minute) * MIB), HOUR_S, heap)
    assert len(record.violations) == len(violations)
    assert all(found.startswith(said) for found, said in zip(record.violations, violations, strict=True))


def test_open_files_that_grow_are_a_violation():
    """However much memory there is."""
    record = judge("master", hourly(lambda _: MIB, lambda minute: 10 + minute // 5), HOUR_S)
    assert record.violations == ("master had 14 open files, and then 20",)
    assert violations_of([record]) == ["standing: master had 14 open files, and then 20"]


def test_what_was_there_for_a_moment_is_not_judged():
    """It has a record all the same, but no line in the table."""
    series = [Sample(5.0 * number, number * MORE_BYTES) for number in range(30)]
    record = judge("worker", series, HOUR_S)
    assert record.violations == ()
    assert "worker" not in summary([record])
    assert "| worker | 60 | 1.0 | 1.0 |  |  |" in summary([StandingRecord("worker", HOUR_S, MIB, MIB, 0, 0, ())])


@pytest.mark.campaign
def test_all_roles_are_watched(tmp_path):
    """A cluster and a run stand; all that was acknowledged is processed; nothing is left."""
    standing = Standing(tmp_path / "standing", 30)
    found = standing.run()
    assert violations_of(found) == []
    assert {"connector", "master", "worker", "PE", "harness", "locust", "all"} <= {record.role for record in found}
    assert not list(standing.running())


@pytest.mark.campaign
def test_eight_simulated_hours_need_no_more_memory_than_one(tmp_path):
    """A run of 48 cells, with ten minutes for each; its journal has all trials."""
    sizes, costs = (100, 1000, 10_000, 100_000), (0, 0.001, 0.002, 0.005, 0.01, 0.02)
    grid = Grid(tuple(map(MessageSize, sizes)), tuple(map(Seconds, costs)))
    search = Search(precision=Share(0.01), budget=Seconds(600))
    scenario = Scenario("eight-hours", ("python/kafka", "spark/kafka"), grid, search=search)
    memory = []

    def sample(measured):
        memory.append(private_bytes(os.getpid()))
        return measured

    results = run_simulated(scenario, Site(), RunFolder(tmp_path), change=sample)
    assert sum(result.seconds for result in results) >= 8 * HOUR_S
    an_hour = len(memory) // 8
    assert max(memory[-an_hour:]) < max(memory[:an_hour]) + MORE_BYTES
