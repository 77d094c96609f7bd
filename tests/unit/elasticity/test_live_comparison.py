"""Two runs whose policies followed the same load are compared, and nothing is claimed that one run cannot show."""

import pytest
from msgspec.structs import replace
from sample_policies import QUICK_ONE, SCENARIO, SLOW_ONE, make_decision, make_policy

from bench.config.elasticity import LoadPart
from bench.config.scenario import LoadSettings
from bench.elasticity.live_comparison import (
    FIGURES,
    describe_difference,
    figure_texts,
    list_changed_settings,
    match_policies,
    why_not_compared,
    why_rates_differ,
)
from bench.units import Rate, Seconds

LATE = make_policy(
    "ds2", make_decision(5, 30.0, 1, 1), make_decision(10, 30.0, 1, 3), make_decision(15, 30.0, 1, 1),
    make_decision(20, 20.0, 2, 2),
)  # fmt: skip
SOON = make_policy(
    "ds2", make_decision(5, 30.0, 1, 3), make_decision(10, 30.0, 3, 3), make_decision(15, 30.0, 3, 2),
    make_decision(20, 20.0, 2, 2),
)  # fmt: skip


def test_a_policy_has_a_text_for_each_figure():
    """What is not known is an empty text."""
    assert dict(zip(FIGURES, figure_texts(QUICK_ONE), strict=True))["Settled after"] == "5 s"
    assert dict(zip(FIGURES, figure_texts(SLOW_ONE), strict=True))["Lost"] == "4"
    nothing = replace(SLOW_ONE, run=replace(SLOW_ONE.run, decisions=[]), measurement=None)
    assert figure_texts(nothing) == ("",) * len(FIGURES)


def test_a_difference_says_in_how_many_loads_it_was_seen():
    """The cost stands beside it, and what was lost in either run."""
    assert describe_difference(LATE, SOON) == (
        "under target for 10 s less (longer in 0 of 2 loads, less in 1), 20 worker-seconds more (+80%)"
    )
    assert describe_difference(SOON, LATE) == (
        "under target for 10 s longer (longer in 1 of 2 loads, less in 0), 20 worker-seconds fewer (-44%)"
    )


def test_a_trace_that_has_changed_is_another_load():
    """Its path is the same; the rates that were offered are not."""
    changed = make_policy("slow", make_decision(5, 30.0, 1, 1), make_decision(10, 7.0, 1, 1))
    assert "(slow at 10 s)" in why_rates_differ([SLOW_ONE, QUICK_ONE], [changed, QUICK_ONE])
    assert why_rates_differ([SLOW_ONE, QUICK_ONE], [QUICK_ONE]) == ""


def test_a_time_within_one_interval_is_not_told_apart():
    """It is counted in intervals."""
    assert describe_difference(SLOW_ONE, QUICK_ONE) == (
        "under target for as long, within one interval of 5 s, 10 worker-seconds more (+100%), lost 4 → 0"
    )
    assert describe_difference(QUICK_ONE, QUICK_ONE).endswith("the same worker-seconds")


def test_messages_that_a_restart_processed_again_are_named():
    """They are no loss, and no repetition by the source."""
    again = replace(QUICK_ONE, measurement=replace(QUICK_ONE.measurement, processed_again=9))
    assert describe_difference(QUICK_ONE, again).endswith("the same worker-seconds, processed again 7 → 9")


def test_one_load_gives_no_count_of_loads():
    """There is nothing to count."""
    short = make_policy("ds2", *(make_decision(5.0 * n, 10.0, 1, 1) for n in (1, 2, 3)))
    long = make_policy("ds2", *(make_decision(5.0 * n, 30.0, 1, 1) for n in (1, 2, 3)))
    assert describe_difference(short, long) == "under target for 15 s longer, the same worker-seconds"


def test_a_policy_that_is_not_complete_is_not_compared():
    """It was under target for a short time only because it ended."""
    failed = make_policy("ds2", make_decision(5, 30.0, 1, 3), failure="it died")
    assert describe_difference(SOON, failed) == "not compared: it is not complete in the second run"
    assert describe_difference(failed, failed) == "not compared: it is not complete in the first and the second run"
    assert describe_difference(None, SOON) == "only in the second run"
    assert describe_difference(SOON, None) == "only in the first run"


def test_a_system_that_is_unsupported_says_why():
    """In both runs."""
    end = replace(SOON.run.end, what="unsupported", reason="its workers are fixed")
    fixed = replace(SOON, run=replace(SOON.run, decisions=[], end=end), measurement=None)
    assert describe_difference(fixed, fixed) == "unsupported: its workers are fixed"


def test_policies_of_two_runs_are_matched_by_system():
    """In the order of the first run that has them."""
    assert match_policies([[SLOW_ONE], [QUICK_ONE, SLOW_ONE]]) == {
        ("engine/source", "slow"): [SLOW_ONE, SLOW_ONE],
        ("engine/source", "quick"): [None, QUICK_ONE],
    }


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (replace(SCENARIO, kind="map", elasticity=None), "is of kind map, the other run of kind elasticity"),
        (replace(SCENARIO, load=LoadSettings(seed=2)), "has another load than the other run (load.seed)"),
        (
            replace(SCENARIO, elasticity=replace(SCENARIO.elasticity, load=(LoadPart(Seconds(9), Rate(30)),))),
            "(elasticity.load)",
        ),
        (replace(SCENARIO, grid=replace(SCENARIO.grid, cpu_cost=(Seconds(0.1),))), "(grid.cpu_cost)"),
    ],
    ids=["kind", "seed", "load", "cost"],
)
def test_another_load_is_refused(changed, reason):
    """In one line that names what differs."""
    found = why_not_compared(SCENARIO, changed)
    assert reason in found
    assert "\n" not in found


def test_other_settings_are_compared_and_named():
    """Whoever compares them wants to know what they do."""
    changed = replace(
        SCENARIO,
        name="other",
        elasticity=replace(SCENARIO.elasticity, interval=Seconds(2)),
        settings={"ds2": {"warm_up_time": "5 s"}},
    )
    assert why_not_compared(SCENARIO, changed) == ""
    assert list_changed_settings(SCENARIO, changed) == [
        "elasticity.interval: 5.0 s → 2.0 s",
        "settings: {} → left out",
        "settings.ds2.warm_up_time: left out → 5 s",
    ]
