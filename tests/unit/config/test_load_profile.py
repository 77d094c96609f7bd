"""A trace is read from a CSV file; a wrong one is an error with the line."""

import pytest
from scenario_files import read_scenario

from bench.config.load_profile import period_of, profile_of, read_trace
from bench.config.yaml_document import read_document
from bench.errors import UsageError
from bench.plugins.scenario_check import check_scenario

LONG = "0,1\n300,5\n600,0\n"


@pytest.fixture
def trace(tmp_path):
    def write(text):
        path = tmp_path / f"trace-{abs(hash(text))}.csv"
        path.write_text(text)
        return path

    return write


def test_a_trace_is_read(trace):
    """Each rate holds until the next time; a header is skipped."""
    assert read_trace(trace("time,rate\n0,100\n2,300\n3,0\n")) == ((2.0, 100.0), (1.0, 300.0))
    assert read_trace(trace("\ufeff0,100\n2,300\n3,0\n")) == ((2.0, 100.0), (1.0, 300.0))  # as spreadsheets write it


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0,1\n0,2\n", ":2: the time 0 does not come after 0"),
        ("0,1\nx,2\n", ":2: found 'x,2'"),
        ("0,1\n1,-2\n", ":2: found '1,-2'"),
        ("0,1\n1,nan\n", ":2: found '1,nan'"),
        ("0,1\n", "has 1 lines"),
        ("", "has 0 lines"),
        ("0,0\n1,0\n", "no rate above 0"),
    ],
)
def test_a_wrong_trace_is_refused_with_its_line(trace, text, why):
    """The error is one line with what was found and what is allowed."""
    with pytest.raises(UsageError, match=why):
        read_trace(trace(text))


def test_a_missing_trace_is_refused_before_anything_starts(tmp_path):
    """The check of a scenario refuses it, and `bench check` with it."""
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "name: x\nsystems: [python/kafka]\ngrid: {message_size: [1 kB]}\nload: {arrivals: trace, trace: nowhere.csv}\n"
    )
    with pytest.raises(UsageError, match=r"nowhere\.csv cannot be read"):
        check_scenario(read_document(path), read_scenario(path))


def test_bursts_and_steps_are_profiles(tmp_path):
    """The profile has the durations and levels of the scenario."""
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "name: x\nsystems: [python/kafka]\ngrid: {message_size: [1 kB]}\nload: {bursts: {period: 2 s, share: 25 %}}\n"
    )
    bursts = read_scenario(path, ["load.arrivals=bursts"]).load
    assert profile_of(bursts) == ((0.5, 1.0), (1.5, 0.0))
    assert len(profile_of(read_scenario(path, ["load.arrivals=steps"]).load)) == 3


@pytest.mark.parametrize(("change", "seconds"), [("load.arrivals=steps", 6), ("load.arrivals=bursts", 1), ("", 0)])
def test_a_profile_has_a_period(tmp_path, change, seconds):
    """Steps last for two seconds each; other arrivals have none."""
    path = tmp_path / "short.yaml"
    path.write_text("{name: short, systems: [python/tcp], grid: {message_size: [100 B]}}")
    assert period_of(read_scenario(path, [change] if change else []).load) == seconds


def test_a_profile_that_no_trial_can_hold_is_refused(tmp_path, trace):
    """Its rate is the mean of the whole profile."""
    path = tmp_path / "long.yaml"
    load = f"load: {{arrivals: trace, trace: {trace(LONG)}}}"
    lines = ["name: long", "systems: [python/tcp]", "grid: {message_size: [100 B]}", load, "search: {budget: 75 s}"]
    path.write_text("\n".join(lines))
    with pytest.raises(UsageError, match=r"long.yaml:4: load.trace: found '?10 min.*at most search.budget"):
        check_scenario(read_document(path), read_scenario(path))
