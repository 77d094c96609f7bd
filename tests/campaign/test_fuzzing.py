"""Invented input ends in a foreseen error or in nothing: what was saved, and some new of a fixed seed."""

from contextlib import nullcontext

import pytest

from tests.campaign import fuzzing
from tests.campaign.outcomes import Log

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


def test_fuzzing_goes_on_where_its_log_ends(tmp_path, monkeypatch):
    """Each piece has a number, and inputs of its own."""
    monkeypatch.setattr(fuzzing, "PIECE", 100)
    log = Log(tmp_path / "fuzzing.jsonl")
    first = list(fuzzing.fuzz_on("legacy", 250, 1, log, seconds=60))
    second = list(fuzzing.fuzz_on("legacy", 400, 1, log, seconds=60))
    assert [record.inputs for record in first] == [100, 100, 50]
    assert [record.inputs for record in second] == [100, 50]
    assert len(log.records()) == 5


class Keeping:
    """A target that keeps 300 kB of memory with each input."""

    seeds, expected = [b"x"], ()

    def __init__(self):
        self._kept = []

    def read(self, data):
        self._kept.append(b"x" * 300_000)

    def repair(self, data):
        return data


def test_memory_that_is_kept_is_a_violation_once_it_is_too_much(tmp_path, monkeypatch):
    """Also where each piece keeps little of it."""
    kept = Keeping()
    monkeypatch.setattr(fuzzing, "PIECE", 100)
    monkeypatch.setitem(fuzzing.TARGETS, "keeping", lambda _: nullcontext(kept))
    records = list(fuzzing.fuzz_on("keeping", 600, 1, Log(tmp_path / "log.jsonl"), seconds=60))
    assert [bool(record.violations) for record in records] == [False, False, False, True, True, True]
    assert "MiB since the first piece" in records[3].violations[0]


def test_inputs_that_reach_further_are_saved(tmp_path, monkeypatch):
    """They are in the corpus from then on, which the tests read."""
    monkeypatch.setattr(fuzzing, "CORPUS", tmp_path)
    fuzzing.fuzz("legacy", 500, 1, keep=True)
    assert len(fuzzing.corpus("legacy")) > 0
    assert fuzzing.check_corpus("legacy") == []
