"""The load is measured by itself, once a run, and what it confirmed is kept."""

import pytest

from bench.calibration import generator_ceiling
from bench.cli import calibration_table
from bench.cli.app import _registry
from bench.config.validation import read_scenario
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.workload.rate_meter import RateMeter


def scenario(tmp_path, *changes):
    path = tmp_path / "scenario.yaml"
    path.write_text("name: x\nsystems: [plain/files]\ngrid: {message_size: [1 kB]}\n")
    return read_scenario(path, changes)


def test_a_meter_leaves_out_the_warm_up():
    """A counter that stood still at first, then rose by 100 a second."""
    meter = RateMeter(10, clock=lambda: 0.0)
    for now, count in ((0.0, 0), (0.5, 0), (1.5, 100), (2.5, 200)):
        meter.record(now, count)
    assert meter.rate == pytest.approx(100)


def test_a_meter_of_nothing_is_zero():
    """Nothing is divided by nothing."""
    assert RateMeter(1).rate == 0


def test_the_ceiling_of_a_cell_is_measured_once(tmp_path, env, monkeypatch):
    """The second question is answered from the run's folder."""
    cell, given = Cell("python", "files", 1000, 0.0), scenario(tmp_path)
    assert generator_ceiling.known_ceiling(cell, given, tmp_path) is None
    found = generator_ceiling.generator_ceiling(cell, given, env, tmp_path)
    assert found > 100
    monkeypatch.setattr(generator_ceiling, "load_rate", None)
    assert generator_ceiling.generator_ceiling(cell, given, env, tmp_path) == found
    assert [ceiling.by for ceiling in generator_ceiling.read_calibration(tmp_path)] == ["load"]


def test_a_slowed_load_has_its_limit_as_ceiling(tmp_path, env):
    """What the search may count on is what the load does."""
    given = scenario(tmp_path, "load.limit=200 /s")
    assert generator_ceiling.generator_ceiling(
        Cell("python", "files", 1000, 0.0), given, env, tmp_path
    ) == pytest.approx(200, rel=0.15)


def test_a_source_that_needs_a_reader_and_has_none_is_not_calibrated(tmp_path, env, monkeypatch):
    """A full source would be taken for a slow load."""
    monkeypatch.delattr("producers.files.source.discard")
    assert not registry.calibrates("files")
    assert (
        generator_ceiling.generator_ceiling(Cell("python", "files", 1000, 0.0), scenario(tmp_path), env, tmp_path)
        is None
    )


@pytest.mark.parametrize("source", ["tcp", "files", "memory", pytest.param("kafka", marks=pytest.mark.real)])
def test_the_verb_prints_a_line_for_each_size_with_the_ratio(tmp_path, source):
    """Both rates are above zero, and the file holds them."""
    asked = calibration_table.Asked([source], ["client-loop"], "1kB", 1, 1.5, [])
    lines = list(calibration_table.lines(asked, tmp_path, None, _cache(), _registry()))
    assert len(lines) == 2
    assert {(ceiling.by, ceiling.hz > 0) for ceiling in generator_ceiling.read_calibration(tmp_path)} == {
        ("load", True),
        ("client-loop", True),
    }


def test_an_unknown_rival_is_refused_before_anything_starts(tmp_path):
    """With those that there are."""
    with pytest.raises(UsageError, match="known: bare"):
        list(
            calibration_table.lines(
                calibration_table.Asked(["tcp"], ["bear"], "1kB", 1, 0.5, []), tmp_path, None, tmp_path, tmp_path
            )
        )


def test_the_codec_has_a_line_for_each_size(tmp_path):
    """What writing and reading cost by themselves."""
    asked = calibration_table.Asked(["message"], [], "1kB", 1, 0.5, [])
    assert len(list(calibration_table.lines(asked, tmp_path, None, tmp_path, tmp_path))) == 6


def _cache():
    from bench.cli.inputs import cache_folder as of_person

    return of_person()
