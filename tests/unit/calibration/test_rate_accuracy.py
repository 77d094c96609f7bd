"""The accuracy of the load's rate follows from its own progress reports."""

import json

import pytest

from bench.calibration.rate_accuracy import decades, rate_in
from bench.cli.calibration_table import CalibrationRequest, table_lines
from bench.cli.inputs import cache_folder
from bench.config.site import Site
from bench.workload.load_spec import SendProgress


def progress(*points):
    return [SendProgress(1, 0, at, count, count, 0, 0.0, 0.0, False) for at, count in points]


def test_decades_end_with_the_top_rate():
    """From one message in ten seconds on."""
    assert decades(2500.0) == [0.1, 1, 10, 100, 1000, 2500.0]


def test_a_rate_is_read_between_moments_at_which_something_was_sent():
    """What waits before the first message and after the last one belongs to no interval."""
    assert rate_in(progress((0.0, 0), (5.0, 1), (9.0, 1), (15.0, 2), (25.0, 3), (29.0, 3))) == pytest.approx(0.1)


def test_too_little_is_no_rate():
    """One message has no interval."""
    assert rate_in(progress((0.0, 0), (5.0, 1))) == 0


def test_the_verb_prints_a_line_for_each_decade(tmp_path, monkeypatch):
    """Up to nine tenths of the maximum rate; the errors are in the last columns."""
    monkeypatch.setattr("bench.calibration.rate_accuracy.MIN_HZ", 100.0)
    monkeypatch.setattr("bench.calibration.rate_accuracy.MIN_LOAD_S", 0.5)
    request = CalibrationRequest(["memory"], [], "1kB", 1, 2.0, ["load.limit=2 k/s"], offered=True)
    found = list(table_lines(request, tmp_path, Site(), cache_folder(), tmp_path / "children"))
    assert len(found) == 4
    assert len(json.loads((tmp_path / "offered.json").read_text())["offered"]) == 3
    assert all(" %" in line for line in found[1:])
