"""Invented input ends in a foreseen error or in nothing: what was saved, and some new of a fixed seed."""

import pytest

from tests.campaign import fuzzing

INPUTS = {"page": 300, "typst": 3, "scenario": 300, "site": 300, "import": 500, "run-folder": 500}
"""Where an input takes long; 1500 of the others."""
pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", fuzzing.names())
def test_saved_inputs_fail_no_more(name):
    """Each of them was a failure once."""
    assert fuzzing.check_corpus(name) == []


@pytest.mark.parametrize("name", fuzzing.names())
def test_new_inputs_end_in_foreseen_errors(name, tmp_path, monkeypatch):
    """Nothing else is raised, logged twice, or left in memory."""
    monkeypatch.setattr(fuzzing, "FAILURES", tmp_path)
    assert fuzzing.fuzz(name, INPUTS.get(name, 1500), seed=1).violations == ()
