"""Limits that are planted in traces of connectors and PEs are named: slow PEs, slow connectors, and none at all.

The traces are those of HarmonicIO in small: a connector hands messages to two PEs, which acknowledge them.
"""

import pytest

from bench.analysis.activity_graph.events import make_events
from bench.analysis.activity_graph.participation import compute_participation
from bench.analysis.activity_graph.windows import Windows
from bench.analysis.explanation import Explanation, explain
from bench.model.trace import Span, TraceMessage

MS = 10**6
SECONDS, WINDOWS = 2000, 4
"""Milliseconds of a trace, and its windows."""
SENDER, PES = "sender 0", ("PE 1", "PE 2")
HAND_OUT_MS = 1


class Trace:
    """A trace under construction; times in milliseconds."""

    def __init__(self):
        self.spans, self.messages = [], []
        self.at = dict.fromkeys((SENDER, *PES), 0)

    def do(self, worker, activity, until):
        """Let a worker do something until a time."""
        if until > self.at[worker]:
            operator = "send" if worker == SENDER else "work"
            self.spans.append(Span(worker, activity, self.at[worker] * MS, until * MS, operator))
            self.at[worker] = until

    def carry(self, kind, sender, receiver, sent, received):
        self.messages.append(TraceMessage(kind, sender, receiver, sent * MS, received * MS))

    def explain(self, *, overloaded) -> Explanation:
        for worker in self.at:
            self.do(worker, "idle(source)" if worker == SENDER and not overloaded else "waiting", SECONDS)
        windows = Windows(0, SECONDS * MS // WINDOWS, WINDOWS)
        found = compute_participation(make_events(self.spans, self.messages), windows)
        return explain(found, batches=False, overloaded=overloaded)


def without_credit(costs) -> Trace:
    """Return a trace in which the PEs always have messages; the connector waits for credit from one of them."""
    trace = Trace()
    acks = sorted((at, pe) for pe, cost in zip(PES, costs, strict=True) for at in range(cost, SECONDS - 50, cost))
    for pe, cost in zip(PES, costs, strict=True):
        for at in range(cost, SECONDS, cost):
            trace.do(pe, "processing", at)
        trace.do(pe, "processing", SECONDS)
    for at, pe in acks:
        if at >= trace.at[SENDER]:
            trace.do(SENDER, "waiting", at)
            trace.carry("control", pe, SENDER, at, at)
            trace.do(SENDER, "serialize", at + HAND_OUT_MS)
    return trace


def handed_out(interval, cost, rest) -> Trace:
    """Return a trace in which the connector hands out a message at each interval, and rests before it."""
    trace = Trace()
    for number, at in enumerate(range(0, SECONDS - interval, interval)):
        pe, done = PES[number % 2], at + interval + cost
        trace.do(SENDER, rest, at + interval - HAND_OUT_MS)
        trace.do(SENDER, "serialize", at + interval)
        trace.do(pe, "waiting", at + interval)
        trace.carry("data", SENDER, pe, at + interval, at + interval)
        trace.do(pe, "processing", done)
        if rest == "idle(source)":
            trace.carry("control", pe, SENDER, done, done)
    return trace


@pytest.mark.parametrize("costs", [(10, 10), (10, 40)], ids=["equal PEs", "one slow PE"])
def test_pes_that_always_have_messages_are_the_limit(costs):
    """A slow one takes fewer messages, and nobody waits for it: it is no straggler."""
    found = without_credit(costs).explain(overloaded=True)
    assert found.shares["processing"] > 0.9
    assert found.straggler is None
    assert [gain.text for gain in found.advice.helps] == ["more cores"]
    assert found.connected == WINDOWS


def test_a_connector_that_always_sends_is_the_limit():
    """The PEs wait for it, so that more of them would not help."""
    found = handed_out(10, 3, "serialize").explain(overloaded=True)
    assert found.shares["serialize"] > 0.9
    assert [gain.text for gain in found.advice.helps] == ["more senders or bridges"]
    assert "more cores" in [gain.text for gain in found.advice.useless]


def test_a_connector_that_gets_no_messages_is_no_limit():
    """Idling is headroom, and the work of the PEs is on the path as far as messages are under way."""
    found = handed_out(10, 3, "idle(source)").explain(overloaded=False)
    assert found.advice.headroom > 0.5
    assert 0.05 < found.shares["processing"] < 0.3
    assert "this trial shows no limit" in found.sentence
