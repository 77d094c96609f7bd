"""The soak test: memory, files and disks are judged by rules; a short one runs; a run of eight simulated hours."""

import os

import pytest
from msgspec.structs import replace

from bench.config.scenario import Grid, Scenario, Search
from bench.config.site import Site
from bench.model.message_sizes import MessageSize
from bench.storage.run_folder import RunFolder
from bench.units import Seconds, Share
from tests.campaign.outcomes import SoakRecord, summary, violations_of
from tests.campaign.soak import JUDGED, MORE_BYTES, ResourceSample, Soak, anonymous_bytes, check_roles, judge
from tests.simulated_runs import run_simulated

MIB = 2**20
HOUR_S = 3600


def hourly(size, descriptors=lambda _: 10):
    """Return samples of an hour, one a minute."""
    return [ResourceSample(60.0 * minute, int(size(minute)), descriptors(minute)) for minute in range(61)]


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
    assert violations_of([record]) == ["soak: master had 14 open files, and then 20"]


def test_what_was_there_for_a_moment_is_not_judged():
    """It has a record all the same, but no line in the table."""
    series = [ResourceSample(5.0 * number, number * MORE_BYTES) for number in range(30)]
    record = judge("worker", series, HOUR_S)
    assert record.violations == ()
    assert "worker" not in summary([record])
    assert "| worker | 60 | 1.0 | 1.0 |  |  |" in summary([SoakRecord("worker", HOUR_S, MIB, MIB, 0, 0, ())])


@pytest.mark.campaign
def test_all_roles_are_watched(tmp_path):
    """A cluster and a run; all that was acknowledged is processed; nothing is left."""
    roles = {*JUDGED, "disk: queue of the master", "disk: data of the run"}
    soak = Soak(tmp_path / "soak", 600, enough=roles.issubset)
    soak.watch()
    found = soak.end()
    assert violations_of(found) == []
    assert {record.role for record in found} >= roles
    assert not soak.running()


def test_a_role_that_was_not_there_for_long_is_a_violation():
    """The run could have failed at once, and nothing of it would have grown."""
    records = [SoakRecord(role, HOUR_S, MIB, MIB, 9, 9, ()) for role in JUDGED]
    assert check_roles(records, HOUR_S) == []
    assert check_roles([*records[1:], replace(records[0], seconds=60.0)], HOUR_S) == ["no harness was there for long"]


@pytest.mark.campaign
def test_eight_simulated_hours_need_no_more_memory_than_one(tmp_path):
    """A run of 48 cells, with ten minutes for each; its journal has all trials."""
    sizes, costs = (100, 1000, 10_000, 100_000), (0, 0.001, 0.002, 0.005, 0.01, 0.02)
    grid = Grid(tuple(map(MessageSize, sizes)), tuple(map(Seconds, costs)))
    search = Search(precision=Share(0.01), budget=Seconds(600))
    scenario = Scenario("eight-hours", ("python/kafka", "spark/kafka"), grid, search=search)
    memory = []

    def sample(measured):
        memory.append(anonymous_bytes(os.getpid()))
        return measured

    results = run_simulated(scenario, Site(), RunFolder(tmp_path), change=sample)
    assert sum(result.seconds for result in results) >= 8 * HOUR_S
    an_hour = len(memory) // 8
    assert max(memory[-an_hour:]) < max(memory[:an_hour]) + MORE_BYTES
