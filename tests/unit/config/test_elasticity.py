"""Scenarios of kind elasticity: a load over time becomes steps, and mistakes are named."""

import pytest
from scenario_files import read_scenario

from bench.config.elasticity import LoadPart
from bench.config.load_profile import profile_over_time
from bench.errors import UsageError
from bench.units import Rate, Seconds

GOOD = """\
name: good
kind: elasticity
systems: [harmonicio/stream]
grid: {message_size: [1 kB]}
elasticity:
  load: [{time: 20 s, rate: 10 /s}]
  policies: [ds2]
"""


def part(shape, **more):
    return LoadPart(Seconds(10), Rate(2), to=Rate(12), shape=shape, **more)


def mean(profile):
    return sum(length * rate for length, rate in profile) / sum(length for length, _ in profile)


@pytest.mark.parametrize(("shape", "rate"), [("step", 2.0), ("ramp", 7.0), ("day", 7.0), ("bursts", 4.0)])
def test_a_part_lasts_as_long_as_it_says_at_its_mean_rate(shape, rate):
    """Ten seconds each, whatever the shape."""
    profile = profile_over_time([part(shape)])
    assert sum(length for length, _ in profile) == pytest.approx(10)
    assert mean(profile) == pytest.approx(rate)


def test_a_trace_is_scaled_to_time_and_highest_rate(tmp_path):
    """Only its shape counts."""
    file = tmp_path / "day.csv"
    file.write_text("0,100\n1,400\n2,0\n")
    profile = profile_over_time([LoadPart(Seconds(10), Rate(8), shape="trace", trace=str(file))])
    assert profile == ((5.0, 2.0), (5.0, 8.0))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("kind=map", "kind: elasticity together with"),
        ("grid.cpu_cost=0 ms,1 ms", "one message size and one CPU cost"),
        ("elasticity.start=20", r"elasticity\.most"),
        ("elasticity.interval=15 s", "two intervals"),
        ("elasticity.load=[{time: 20 s, rate: 1 /s, shape: ramp}]", "which the shape ramp needs"),
        ("elasticity.load=[{time: 20 s, rate: 1 /s, shape: trace}]", "which the shape trace needs"),
        (
            "elasticity.load=[{time: 20 s, rate: 1 /s, to: 2 /s}]",
            r"load\[0\]\.to: found '2 /s'; allowed: no to with the",
        ),
        ("elasticity.load=[{time: 20 s, rate: 1 /s, period: 2 s}]", "no period with the shape step"),
        ("elasticity.load=[{time: 20 s, rate: 1 /s, to: 2 /s, shape: bursts, period: 1 ms}]", "at most 1000 periods"),
        ("load.arrivals=poisson", "constant, with kind: elasticity"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, change, why):
    """In a line that says what is allowed."""
    file = tmp_path / "good.yaml"
    file.write_text(GOOD)
    assert read_scenario(file).kind == "elasticity"
    with pytest.raises(UsageError, match=why):
        read_scenario(file, [change])
