"""Advice follows from the critical participation of activities by a table, and says what a change can gain at most."""

import pytest

from bench.analysis.advice import CHANGES, NAMES, ChangeAdvice, Gain, advise, find_straggler, write_sentence
from bench.model.trace import ACTIVITIES, MESSAGE_KINDS


def test_every_activity_has_a_name():
    """And every kind of message."""
    assert NAMES.keys() == {*ACTIVITIES, *MESSAGE_KINDS}


def test_changes_act_on_known_activities():
    """A table with a wrong name would never help."""
    assert {name for change in CHANGES for name in change.activities} <= {*ACTIVITIES, *MESSAGE_KINDS}


@pytest.mark.parametrize(
    ("shares", "first"),
    [
        ({"processing": 0.9, "source-read": 0.1}, "more cores"),
        ({"planning": 0.3, "control": 0.2, "processing": 0.5 - 0.1, "wal-commit": 0.1}, "a longer batch interval"),
        ({"wal-commit": 0.4, "offset-commit": 0.3, "processing": 0.3}, "a longer batch interval"),
        ({"source-read": 0.6, "processing": 0.4}, "a faster source"),
        ({"gc": 0.9}, "more cores"),
    ],
    ids=["work", "planning", "commits", "source", "garbage collection"],
)
def test_the_change_that_can_gain_most_comes_first(shares, first):
    """Its gain is the sum of what it acts on."""
    advice = advise(shares, batches=True, overloaded=True)
    assert advice.helps[0].text == first
    assert advice.helps[0].share == pytest.approx(max(gain.share for gain in advice.helps))


def test_a_change_that_gains_little_is_useless():
    """It is named if people would try it first."""
    advice = advise({"planning": 0.94, "processing": 0.06}, batches=True, overloaded=True)
    assert advice.useless == (Gain("more cores", 0.06), Gain("a faster source", 0.0))


def test_a_framework_without_batches_has_no_batch_interval():
    """Nor checkpoints of batches."""
    advice = advise({"scheduling": 0.9, "processing": 0.1}, batches=False, overloaded=True)
    assert advice.helps == ()
    assert "batch" not in "".join(gain.text for gain in advice.useless)


@pytest.mark.parametrize(("overloaded", "headroom", "helps"), [(True, 0.0, 1), (False, 0.8, 0)])
def test_waiting_for_messages_is_headroom_unless_there_are_some(overloaded, headroom, helps):
    """In an overloaded trial the source does not give what it has."""
    advice = advise({"idle(source)": 0.8, "processing": 0.2 - 0.05}, batches=False, overloaded=overloaded)
    assert advice.headroom == headroom
    assert len([gain for gain in advice.helps if "source" in gain.text]) == helps


def test_the_sentence_says_what_helps_and_what_does_not():
    """With the largest shares."""
    shares = {"planning": 0.5, "processing": 0.3, "offset-commit": 0.14, "control": 0.04, "source-read": 0.02}
    sentence = write_sentence(shares, advise(shares, batches=True, overloaded=True), None)
    assert sentence == (
        "50% of the critical path is planning batches, 30% is burning the messages’ CPU cost and 14% is committing a "
        "batch; a longer batch interval or more cores would help, a faster source would not"
    )


def test_the_sentence_of_a_trial_with_headroom_gives_no_advice():
    """It shows no limit."""
    shares = {"idle(trigger)": 0.78, "processing": 0.22}
    sentence = write_sentence(shares, advise(shares, batches=True, overloaded=False), None)
    assert sentence.endswith("; the system has time left, so that this trial shows no limit")


def test_the_sentence_names_a_straggler():
    """And what it has of the critical path."""
    sentence = write_sentence({"processing": 0.9}, ChangeAdvice((), (), 0.0), ("task 1", 0.85, 2))
    assert sentence.endswith(
        "; task 1 alone has 85%, of 2 workers: equal parts for all would help, more cores would not"
    )


def test_advice_names_equal_parts_where_the_sentence_does():
    """More cores help nobody who waits for one worker, whatever share their activities have."""
    advice = advise({"processing": 1.0}, batches=False, overloaded=True, straggler=("task 1", 0.9, 2))
    assert [gain.text for gain in advice.helps] == ["equal parts for all"]


def test_a_trace_without_a_path_says_so():
    """There is nothing to advise."""
    assert advise({}, batches=True, overloaded=True) == ChangeAdvice((), (), 0.0)
    assert "no path" in write_sentence({}, ChangeAdvice((), (), 0.0), None)


@pytest.mark.parametrize(
    ("shares", "busy", "found"),
    [
        ({"a": 0.8, "b": 0.0, "driver": 0.2}, {"a": 9.0, "b": 5.0, "driver": 2.0}, ("a", 0.8, 2)),
        ({"a": 0.8, "b": 0.0, "driver": 0.2}, {"a": 9.0, "b": 8.8, "driver": 2.0}, None),
        ({"a": 0.4, "b": 0.4, "driver": 0.2}, {"a": 9.0, "b": 9.0, "driver": 2.0}, None),
        ({"driver": 0.9, "a": 0.1, "b": 0.0}, {"driver": 9.0, "a": 1.0, "b": 1.0}, None),
        ({"a": 0.05, "b": 0.0, "driver": 0.0}, {"a": 9.0, "b": 0.0, "driver": 0.0}, None),
        ({"a": 0.3, "b": 0.0}, {"a": 3.0, "b": 0.0}, None),
        ({"a": 0.5, "b": 0.28}, {"a": 9.9, "b": 5.6}, ("a", 0.5, 2)),
        ({"a": 0.5, "b": 0.43}, {"a": 9.9, "b": 8.6}, None),
        ({"a": 0.4, "b": 0.22}, {"a": 8.0, "b": 4.4}, None),
        ({}, {}, None),
    ],
    ids=[
        "straggler",
        "as busy as the other",
        "both",
        "one of its kind",
        "too little",
        "mostly idle",
        "never idle while the other is",
        "nearly as busy",
        "both idle",
        "nobody",
    ],
)
def test_a_straggler_is_busier_than_others_that_do_the_same(shares, busy, found):
    """And has most of their critical path, and idles less than it works; or it never idles while the others do."""
    idle = {worker: 10 - time for worker, time in busy.items()}
    assert find_straggler(shares, busy, idle, {"a": "map", "b": "map", "driver": "schedule"}) == found
