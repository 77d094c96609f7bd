"""The load is measured by itself, once a run, and what it confirmed is kept."""

from dataclasses import replace

import pytest
from msgspec import structs
from scenario_files import read_scenario

from bench.calibration.calibration_file import read_calibration, write_calibration
from bench.calibration.generator_ceiling import QUICK_S, GeneratorCeilings, calibrates
from bench.cli.calibration_table import CalibrationRequest, table_lines
from bench.cli.inputs import cache_folder
from bench.config.site import Site
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.workload.rate_meter import RateMeter
from producers.files import plugin as files_plugin


def scenario(tmp_path, *changes):
    path = tmp_path / "scenario.yaml"
    path.write_text("name: x\nsystems: [python/files]\ngrid: {message_size: [1 kB]}\n")
    return read_scenario(path, changes)


def test_a_meter_leaves_out_the_warm_up():
    """A counter that stood still at first, then rose by 100 a second."""
    meter = RateMeter(10, clock=lambda: 0.0)
    for now, count in ((0.0, 0), (0.5, 0), (1.5, 100), (2.5, 200)):
        meter.record(now, count)
    assert meter.rate == pytest.approx(100)


def test_a_meter_of_nothing_is_zero():
    """A meter without messages has the rate 0."""
    assert RateMeter(1).rate == 0


def test_the_ceiling_of_a_cell_is_measured_once(tmp_path, env):
    """The second question is answered from the run's folder: no two loads give the same rate to the last digit."""
    cell, given = Cell("python", "files", 1000, 0.0), scenario(tmp_path)
    assert read_calibration(tmp_path) == []
    ceilings = GeneratorCeilings(tmp_path)
    found = ceilings.measure(cell, given, env)
    assert found > 100
    assert ceilings.measure(cell, given, env) == found
    assert GeneratorCeilings(tmp_path).measure(cell, given, env) == found
    assert [ceiling.by for ceiling in read_calibration(tmp_path)] == ["load"]


def test_a_slowed_load_has_its_limit_as_ceiling(tmp_path, env):
    """The limit bounds the answer even where a pause of the sender before the window is made up for within it."""
    given = scenario(tmp_path, "load.limit=200 /s")
    found = GeneratorCeilings(tmp_path).measure(Cell("python", "files", 1000, 0.0), given, env)
    assert 0 < found <= 200


def test_a_ceiling_above_the_limit_counts_as_the_limit(tmp_path, env):
    """As a run's folder may hold it: 230 messages/s were measured while a paused sender caught up."""
    given, cell = scenario(tmp_path, "load.limit=200 /s"), Cell("python", "files", 1000, 0.0)
    GeneratorCeilings(tmp_path).measure(cell, given, env)
    [measured] = read_calibration(tmp_path)
    write_calibration(tmp_path, [structs.replace(measured, rates=[230.6])])
    assert GeneratorCeilings(tmp_path).measure(cell, given, env) == 200


def test_a_source_that_needs_a_reader_and_has_none_is_not_calibrated(tmp_path, env, monkeypatch):
    """A full source would be taken for a slow load."""
    monkeypatch.setattr(files_plugin, "plugin", replace(files_plugin.plugin, discard=None))
    assert not calibrates("files")
    assert GeneratorCeilings(tmp_path).measure(Cell("python", "files", 1000, 0.0), scenario(tmp_path), env) is None


@pytest.mark.parametrize("source", ["tcp", "files", "memory", pytest.param("kafka", marks=pytest.mark.real)])
def test_the_verb_prints_a_line_for_each_size_with_the_ratio(tmp_path, source):
    """Both rates are above zero, and the file holds them."""
    request = CalibrationRequest([source], ["client-loop"], "1kB", 1, QUICK_S, [])
    lines = list(table_lines(request, tmp_path, Site(), cache_folder(), tmp_path / "children"))
    assert len(lines) == 2
    assert {(ceiling.by, ceiling.hz > 0) for ceiling in read_calibration(tmp_path)} == {
        ("load", True),
        ("client-loop", True),
    }


def test_an_unknown_baseline_producer_is_refused_before_anything_starts(tmp_path):
    """The error lists the baseline producers that exist."""
    request = CalibrationRequest(["tcp"], ["client-lop"], "1kB", 1, 0.5, [])
    with pytest.raises(UsageError, match="known: client-loop, client-loop-constant, constant"):
        list(table_lines(request, tmp_path, Site(), tmp_path, tmp_path))


def test_the_codec_has_a_line_for_each_size(tmp_path):
    """What writing and reading cost by themselves."""
    request = CalibrationRequest(["message"], [], "1kB", 1, 0.5, [])
    assert len(list(table_lines(request, tmp_path, Site(), tmp_path, tmp_path))) == 6
