"""PEs that end soon after their start are started again after a growing delay."""

from frameworks.harmonicio.engine.master.restart_delay import MAX_DELAY_S, SHORT_LIFE_S, RestartDelay


def fail(delay, pe_id, now):
    """Start a PE that ends at once."""
    delay.record_start(pe_id, "s", now)
    return delay.record_ends({pe_id}, now)


def test_the_delay_doubles_with_each_failure_to_a_limit():
    """Several PEs that end during one delay are one failure."""
    delay, now, delays = RestartDelay(), 100.0, []
    for number in range(7):
        assert fail(delay, f"{number}", now) == ["s"]
        assert fail(delay, f"{number} too", now) == []
        delays.append(next(wait for wait in (1, 2, 4, 8, 16, MAX_DELAY_S) if delay.may_start("s", now + wait)))
        now += delays[-1]
    assert delays == [1, 2, 4, 8, 16, MAX_DELAY_S, MAX_DELAY_S]


def test_a_pe_that_lives_ends_the_row():
    """One that was started before the failure does not."""
    delay = RestartDelay()
    delay.record_start("old", "s", 0.0)
    fail(delay, "bad", 50.0)
    delay.record_running(["old"], 60.0)
    assert "1 in a row" in delay.problem("s", 60.0)
    delay.record_start("new", "s", 60.0)
    delay.record_running(["new"], 60.0 + SHORT_LIFE_S)
    assert delay.problem("s", 60.0)
    delay.record_running(["new"], 60.1 + SHORT_LIFE_S)
    assert (delay.problem("s", 71.0), delay.may_start("s", 50.5)) == ("", True)


def test_the_end_of_a_pe_that_lived_or_was_told_to_end_is_no_failure():
    """The next one is started at once."""
    delay = RestartDelay()
    delay.record_start("old", "s", 0.0)
    delay.record_start("told", "s", 0.0)
    assert (delay.stream_of("old"), delay.stream_of("other")) == ("s", "")
    delay.record_stop("told")
    assert delay.record_ends({"old", "told"}, SHORT_LIFE_S + 0.1) == []
    assert (delay.may_start("s", SHORT_LIFE_S), delay.problem("s", SHORT_LIFE_S)) == (True, "")
