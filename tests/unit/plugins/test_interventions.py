"""A change of a system is a setting of its plugins, or the reason why there is none."""

import pytest

from bench.config.scenario import Grid, LoadSettings, Objectives, Scenario
from bench.config.site import Site
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.message_keys import Keys
from bench.model.message_sizes import MessageSize
from bench.plugins import registry
from bench.plugins.interventions import change_setting

GRID = Grid((MessageSize(100),))
SPARK, PYTHON = Cell("spark", "kafka", 100, 0.0), Cell("python", "kafka", 100, 0.001)


def change(lever, cell, settings=None, cores=4, **more):
    return change_setting(
        lever, cell, Scenario("x", (cell.system,), GRID, settings=settings or {}, **more), Site(), cores
    )


@pytest.mark.parametrize("name", registry.names("frameworks"))
def test_the_interval_setting_of_a_framework_is_one_of_its_settings(name):
    """Where it has one at all."""
    plugin = registry.framework_plugin(name)
    assert plugin.interval_setting in ("", *plugin.settings.__struct_fields__)


@pytest.mark.parametrize("name", registry.names("sources"))
def test_a_source_with_partitions_has_a_setting_for_them(name):
    """Its name is the same in all."""
    plugin = registry.source_plugin(name)
    assert plugin.parts is None or "partitions" in plugin.settings.__struct_fields__


@pytest.mark.parametrize(
    ("lever", "cell", "settings", "values", "ratio"),
    [
        ("batch interval", SPARK, {}, {"spark": {"batch_interval": "2.0 s"}}, 2),
        ("batch interval", SPARK, {"spark": {"batch_interval": "200 ms"}}, {"spark": {"batch_interval": "0.4 s"}}, 2),
        ("workers", SPARK, {"spark": {"cores": 3}}, {"spark": {"cores": 4}}, 4 / 3),
        ("workers", PYTHON, {"python": {"processes": 1}}, {"python": {"processes": 2}}, 2),
        (
            "workers",
            PYTHON,
            {"python": {"processes": 2}, "kafka": {"partitions": 2}},
            {"python": {"processes": 4}, "kafka": {"partitions": 4}},
            2,
        ),
        ("partitions", PYTHON, {"kafka": {"partitions": 1}}, {"kafka": {"partitions": 4}}, 4),
        ("partitions", PYTHON, {"kafka": {"partitions": 6}}, {"kafka": {"partitions": 8}}, 8 / 6),
    ],
    ids=["interval", "shorter interval", "all cores", "twice", "partitions follow", "one partition", "uneven"],
)
def test_a_change_is_made_by_settings(lever, cell, settings, values, ratio):
    """Of the framework, or of the source."""
    found = change(lever, cell, settings)
    assert (found.values, found.ratio) == (values, pytest.approx(ratio))
    assert "->" in found.text


@pytest.mark.parametrize(
    ("lever", "cell", "more", "why"),
    [
        ("workers", PYTHON, {}, "there are 4 cores"),
        ("workers", Cell("capacity", "memory", 100, 0.0), {}, "no setting for the number"),
        ("batch interval", PYTHON, {}, "no setting for it"),
        ("batch interval", SPARK, {"objectives": Objectives(batches="grow")}, "batches: grow"),
        ("partitions", Cell("python", "tcp", 100, 0.0), {}, "number of its partitions"),
        ("partitions", PYTHON, {}, "equal parts for 4 readers already"),
        ("partitions", PYTHON, {"load": LoadSettings(keys=Keys(10))}, "load.keys"),
    ],
    ids=["no core left", "fixed workers", "no batches", "batches may grow", "no partitions", "equal", "keys"],
)
def test_a_change_that_cannot_be_made_has_a_reason(lever, cell, more, why):
    """In one line."""
    with pytest.raises(UsageError, match=why) as refused:
        change(lever, cell, **more)
    assert "\n" not in str(refused.value)
