"""What is said of policies on a running system."""

import pytest
from sample_policies import BOTH, QUICK_ONE, make_decision, make_policy
from sample_runs import QUICK, make_run

from bench.elasticity.live_comparison import PolicyResult
from bench.elasticity.live_run import FORMAT, LivePolicyRun, LiveRecord
from bench.errors import UsageError
from reports.data.policy_runs import (
    ElasticSystem,
    compare_policies,
    list_changes,
    make_policy_rows,
    read_elastic_systems,
    summarize_policies,
)


def test_the_policies_that_were_under_target_for_the_shortest_and_the_longest_time_are_named() -> None:
    """Their costs stand beside them, and who lost messages is named."""
    slower = make_policy("slow", *(make_decision(at, 30.0, 1, 1) for at in (5, 10, 15)), lost=4)
    assert summarize_policies(ElasticSystem("engine/source", (slower, QUICK_ONE))) == (
        "engine/source: quick was under target for 5 s at 20 worker-seconds, the shortest time; slow for 15 s at 15,"
        " the longest. slow lost messages."
    )


def test_times_that_differ_by_one_interval_are_the_same() -> None:
    """One run of each does not tell them apart."""
    assert summarize_policies(BOTH) == (
        "engine/source: quick was under target for 5 s at 20 worker-seconds; slow for as long, within one interval,"
        " at up to 10. slow lost messages."
    )


def test_a_run_that_failed_is_never_the_best() -> None:
    """It was under target for a short time only because it ended."""
    broken = make_policy("broken", make_decision(5, 10.0, 1, 1), failure="it died")
    assert summarize_policies(ElasticSystem("engine/source", (broken, QUICK_ONE))) == (
        "engine/source: quick was under target for 5 s at 20 worker-seconds; broken is not complete (it died)."
    )
    assert summarize_policies(ElasticSystem("engine/source", (broken,))) == (
        "engine/source: broken is not complete (it died)."
    )


def test_a_system_whose_workers_are_fixed_says_why() -> None:
    """There is nothing to score."""
    end = LiveRecord(FORMAT, "engine/source", "quick", 1, "unsupported", reason="its workers are fixed")
    run = LivePolicyRun("engine/source", "quick", 1, [], end)
    elastic = ElasticSystem("engine/source", (PolicyResult(run, None),))
    assert summarize_policies(elastic) == "engine/source: its workers are fixed."
    assert compare_policies(elastic) is None
    assert list(make_policy_rows(elastic)) == [("quick", *[""] * 12)]


def test_a_row_has_the_score_and_the_exact_counts() -> None:
    """A load that is not met at its end never settles."""
    rows = list(make_policy_rows(BOTH))
    assert rows[0][:7] == ("slow", "10 s", "100", "10", "0", "0", "never")
    assert rows[0][10:] == ("4", "0", "7")
    assert rows[1][:7] == ("quick", "5 s", "100", "20", "1", "0", "5 s")


def test_a_change_has_its_reason() -> None:
    """Intervals without a change are left out."""
    assert list(list_changes(QUICK_ONE)) == [("5 s", "1 → 3", "<b>because</b>")]


def test_a_run_of_another_kind_is_refused(tmp_path) -> None:
    """It has maps."""
    with pytest.raises(UsageError, match="is of kind map"):
        read_elastic_systems(make_run(tmp_path / "run", QUICK, unfinished=()))
