"""The open-loop sender offers the specified rate, from one message in ten seconds on."""

import pytest
from manual_clock import ManualClock

from bench.workload.load_spec import LoadSpec
from bench.workload.open_loop import OpenLoopSender, run_load


class CountingClient:
    """A client that takes and confirms everything."""

    def __init__(self):
        self.count = self.calls = 0

    def send(self, messages):
        self.calls += 1
        self.count += len(messages)
        return len(messages)

    def confirmed(self):
        return self.count, 0


@pytest.mark.parametrize("rate", [0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6], ids="{:g} per s".format)
def test_the_offered_rate_is_within_one_percent(rate):
    """Neither more nor fewer messages are sent than are due, apart from those of the last moment."""
    clock, client, reported = ManualClock(tick=2e-5), CountingClient(), []
    seconds = max(1.0, 200 / rate)
    sender = OpenLoopSender(LoadSpec(1, rate, 1000.0, seconds, message_bytes=64, cpu_seconds=0.0, entropy=0.5), client)
    run_load(sender, reported.append, lambda: clock.now >= 1000 + 0.9 * seconds, clock, clock.sleep)
    elapsed = reported[-1].at - 1000
    assert reported[-1].accepted == pytest.approx(rate * elapsed, rel=0.01, abs=1)


def test_a_generator_that_keeps_up_pauses_between_its_steps():
    """It makes at most about a thousand steps a second; messages that fall due meanwhile are sent together."""
    clock, client = ManualClock(tick=2e-5), CountingClient()
    sender = OpenLoopSender(LoadSpec(1, 1e5, 1000.0, 1.0, message_bytes=64, cpu_seconds=0.0, entropy=0.5), client)
    run_load(sender, lambda _: None, lambda: False, clock, clock.sleep)
    assert client.count == 100_000
    assert client.calls <= 1100
