"""The workers, cores and partitions of a run follow from its settings and the declarations of its plugins."""

import pytest

from bench.config.scenario import Grid, Scenario
from bench.config.site import Site
from bench.model.message_sizes import MessageSize
from bench.plugins import registry
from bench.plugins.measured_deployment import measured_deployment, partitions_for

GRID = Grid((MessageSize(100),))


def scenario(system, **settings):
    return Scenario("x", (system,), GRID, settings=settings)


@pytest.mark.parametrize("name", registry.names("frameworks"))
def test_the_worker_setting_of_a_framework_is_one_of_its_settings(name):
    """Where its number of workers can be set at all."""
    plugin = registry.framework_plugin(name)
    assert plugin.worker_setting in ("", *plugin.settings.__struct_fields__)


@pytest.mark.parametrize(
    ("settings", "workers"), [({}, 4), ({"python": {"processes": 3}}, 3)], ids=["left out", "set by the scenario"]
)
def test_there_is_a_worker_for_each_core_where_the_scenario_sets_none(settings, workers):
    """The cores are those of the machine."""
    found = measured_deployment("python", "kafka", scenario("python/kafka", **settings), Site(), 4)
    assert (found.workers, found.cores, found.setting) == (workers, 4, "settings.python.processes")


@pytest.mark.parametrize(
    ("system", "workers"), [("python/kafka", 1), ("spark/kafka", 1), ("harmonicio/kafka", 4), ("python/files", 4)]
)
def test_a_worker_without_a_partition_did_not_work(system, workers):
    """Where the workers read the partitions themselves; PEs of HarmonicIO do not."""
    framework, _, source = system.partition("/")
    settings = {"python": {"processes": 4}, "spark": {"cores": 4}, "harmonicio": {"pes": 4}, "kafka": {"partitions": 1}}
    assert measured_deployment(framework, source, scenario(system, **settings), Site(), 4).workers == workers


def test_a_framework_without_the_setting_has_as_many_workers_as_readers():
    """`capacity` is one thread, whatever the machine is."""
    found = measured_deployment("capacity", "memory", scenario("capacity/memory"), Site(), 4)
    assert (found.workers, found.setting) == (1, "")


@pytest.mark.parametrize(
    ("framework", "source", "partitions"),
    [
        ("python", "kafka", 12),
        ("spark", "pulsar", 12),
        ("harmonicio", "kafka", 2),
        ("python", "tcp", None),
        ("capacity", "kafka", 2),
    ],
)
def test_partitions_follow_the_tasks_that_read_them(framework, source, partitions):
    """Bridges of HarmonicIO read, not its PEs; a source without partitions has none."""
    assert partitions_for(framework, source, scenario(f"{framework}/{source}"), 12) == partitions
