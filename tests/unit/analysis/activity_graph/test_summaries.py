"""Critical participation is added up by activity, operator, worker and channel."""

import pytest

from bench.analysis.activity_graph import summaries
from bench.analysis.activity_graph.events import make_events
from bench.analysis.activity_graph.participation import Participation, compute_participation
from bench.analysis.activity_graph.windows import Windows
from bench.model.trace import Span, TraceMessage


@pytest.fixture
def found() -> Participation:
    """Return a driver that lets two workers work; `slow` is the last one to end."""
    spans = [
        Span("driver", "planning", 0, 10, "driver"), Span("driver", "idle(trigger)", 90, 100, "driver"),
        Span("quick", "processing", 20, 40, "map"), Span("slow", "processing", 20, 80, "map"),
    ]  # fmt: skip
    messages = [
        TraceMessage("control", "driver", "quick", 10, 20), TraceMessage("control", "driver", "slow", 10, 20),
        TraceMessage("control", "slow", "driver", 80, 90),
    ]  # fmt: skip
    waiting = [Span("quick", "waiting", 40, 100), Span("slow", "waiting", 80, 100)]
    return compute_participation(make_events(spans + waiting, messages), Windows(0, 100, 1), min_gap=0)


def test_activities_add_up_to_one(found):
    """Messages count as activities of their kind."""
    assert summaries.sum_by_activity(found) == pytest.approx(
        {"processing": 0.6, "control": 0.2, "planning": 0.1, "idle(trigger)": 0.1, "waiting": 0.0}
    )


def test_the_straggler_has_the_largest_share_of_the_workers(found):
    """Idling is nobody's work."""
    assert summaries.sum_by_worker(found) == pytest.approx({"slow": 0.6, "driver": 0.1, "quick": 0.0})


def test_an_operator_is_divided_by_its_workers(found):
    """As in the paper: operators of many workers are not named for their number."""
    assert summaries.sum_by_operator(found) == pytest.approx({"map": 0.3, "driver": 0.1})


def test_channels_have_the_shares_of_their_messages(found):
    """From whom to whom."""
    assert summaries.sum_by_channel(found) == pytest.approx(
        {("driver", "slow"): 0.1, ("slow", "driver"): 0.1, ("driver", "quick"): 0.0}
    )


def test_the_profile_counts_what_is_not_critical_too(found):
    """It is the share of the time in which workers neither wait nor idle."""
    assert summaries.profile_by_activity(found) == pytest.approx({"processing": 80 / 90, "planning": 10 / 90})


def test_activities_over_time_have_a_value_for_each_window(found):
    """The largest one comes first."""
    over_time = summaries.activities_over_time(found)
    assert next(iter(over_time)) == "processing"
    assert {len(values) for values in over_time.values()} == {1}
