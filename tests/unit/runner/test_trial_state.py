"""The counters of a trial follow what load generator and framework report, and say when a rate is hopeless."""

import pytest
from msgspec.structs import replace

from bench.model.measurement import Batches, PlannedTrial
from bench.model.trace import Span, TraceEvents
from bench.runner.trial_state import MAX_BACKLOG_S, MAX_MEMORY_SHARE, TrialState
from bench.workload.delivery_counts import ProcessingReport, SequenceSums, sum_range
from bench.workload.load_spec import LoadSpec, SendProgress, SendProgressSum

BEGIN = 1000.0
"""Monotonic seconds of the first due time."""


def state(
    rate: float = 100.0, *, batch_interval: float = 0.0, message_bytes: int = 100, memory: float | None = None,
    window: float = 10.0, **load: object,
) -> TrialState:  # fmt: skip
    """Return the state of trial 7 (run 8): 1 s to settle, a window of 10 s."""
    spec = LoadSpec(8, rate, BEGIN, 1.0 + window, message_bytes=message_bytes, cpu_seconds=0.0, entropy=0.5, **load)
    return TrialState(PlannedTrial(7, rate, 1.0, window, "search"), spec, batch_interval, memory)


def sent(
    confirmed: int, *, run: int = 8, failed: int = 0, at: float = 1.0, late: float = 0.0, done: bool = False
) -> SendProgress:
    return SendProgress(run, 0, BEGIN + at, confirmed, confirmed, failed, late=late, blocked=0.0, done=done)


def processed(first: int, count: int, *, run: int = 8, at: float = 1.0, corrupted: int = 0) -> ProcessingReport:
    """Return a report of messages with numbers from `first` on."""
    numbers = range(first, first + count)
    return ProcessingReport(
        BEGIN + at, run, [SequenceSums(0, count, sum(numbers), sum(n * n for n in numbers))], corrupted=corrupted
    )


def followed(trial: TrialState, seconds: float, processed_hz: float) -> TrialState:
    """Give a trial a row each 0.1 s while the framework processes at a constant rate."""
    done = 0
    for tenth in range(round(10 * seconds) + 1):
        at = tenth / 10
        new = int(at * processed_hz) - done
        if new:
            trial.add_report(processed(done, new, at=at))
            done += new
        trial.add_row(at, moved=bool(new))
    return trial


def test_a_new_trial_has_nothing():
    """Nothing was sent, so that nothing is lost."""
    trial = state()
    assert (trial.confirmed, trial.failed, trial.processed, trial.losses()) == (0, 0, 0, (0, 0))
    assert not trial.is_sent
    assert trial.is_exact
    assert trial.window_end == 11.0


def test_a_trial_is_exact_when_what_was_confirmed_was_processed_once():
    """It is sent when the load generator is done."""
    trial = state()
    trial.add_progress(sent(10, done=True))
    assert trial.is_sent
    assert not trial.is_exact
    assert trial.add_report(processed(0, 10))
    assert trial.is_exact


def test_progress_of_another_run_is_dropped():
    """A load generator may still speak of the trial before."""
    trial = state()
    trial.add_progress(sent(10, run=7, done=True))
    assert (trial.confirmed, trial.is_sent) == (0, False)


def test_messages_of_an_earlier_trial_are_stale():
    """They are counted by themselves; first messages (run 0) are not, and what has no run counts here."""
    trial = state()
    assert not trial.add_report(processed(0, 5, run=7))
    assert not trial.add_report(processed(0, 3, run=0))
    assert (trial.stale, trial.processed) == (5, 0)
    assert trial.add_report(ProcessingReport(BEGIN + 1, -1, [], corrupted=2))
    assert (trial.processed, trial.counts.corrupted) == (2, 2)


@pytest.mark.parametrize(
    ("reports", "losses"),
    [
        ([processed(0, 9)], (1, 0)),
        ([processed(0, 10), processed(3, 1)], (0, 1)),
        ([processed(0, 9), processed(3, 1)], (1, 1)),
        ([processed(0, 9, corrupted=1)], (0, 0)),
    ],
    ids=["lost", "duplicated", "both", "damaged"],
)
def test_losses_and_duplicates_are_counted(reports, losses):
    """A damaged message is damaged, not lost."""
    trial = state()
    trial.add_progress(sent(10, done=True))
    for report in reports:
        trial.add_report(report)
    assert trial.losses() == losses


def test_a_refused_message_leaves_a_hole_that_is_no_loss():
    """Its number was given, and a later one was processed in its place."""
    trial = state()
    trial.add_progress(sent(9, failed=1, done=True))
    trial.add_report(processed(0, 4))
    trial.add_report(processed(5, 5))
    assert trial.losses() == (0, 0)
    assert trial.is_exact


def test_a_batch_is_kept_with_its_begin_and_end():
    """Its reports are one batch, damaged messages included; those of another trial are not in it."""
    trial = state()
    for report in (processed(0, 5, at=2.5), processed(5, 2, at=2.5, corrupted=1), processed(0, 9, run=7, at=2.5)):
        trial.add_report(replace(report, began=BEGIN + 1.5))
    trial.add_report(ProcessingReport(BEGIN + 2.5, -1, [], corrupted=3, began=BEGIN + 1.5))
    trial.add_report(replace(processed(7, 4, at=1.25), began=BEGIN - 0.5))
    assert trial.batches() == Batches([-0.5, 1.5], [1.25, 2.5], [4, 11])


def test_a_continuous_framework_has_no_batches():
    """Its reports have no begin of a batch."""
    assert followed(state(), 2.0, 100.0).batches() == Batches()


def test_the_first_death_is_kept():
    """A later death, which may follow from it, is not noted."""
    trial = state()
    trial.add_death("source died", "a server ended")
    trial.add_death("load died", "no connection")
    assert (trial.death, trial.note) == ("source died", "a server ended")


def test_a_row_is_kept_when_the_counter_moved_or_after_a_while():
    """The times of rows never go back."""
    trial = state()
    trial.add_progress(sent(40))
    for at, moved in ((0.0, False), (0.05, False), (0.06, True), (0.04, True), (0.2, False)):
        trial.add_row(at, moved=moved)
    rows = trial.rows.series()
    assert rows.at == [0.0, 0.06, 0.06, 0.2]
    assert rows.sent == [40] * 4
    assert rows.offered == [trial.schedule.count(at) for at in rows.at]


@pytest.mark.parametrize(
    ("progress", "end", "late"),
    [
        (None, 11.0, 11.0),
        (sent(10, at=10.0, late=0.5), 11.0, 0.55),
        (sent(10, at=2.0, late=0.5), 11.0, 1.0),
        (sent(10, at=0.0, late=0.5), 11.0, 0.5),
    ],
    ids=["never reported", "a moment earlier", "long before", "at the begin"],
)
def test_lateness_grows_evenly_until_the_end(progress, end, late):
    """At most twice what was reported is taken; a generator that never reported was late all the time."""
    assert state().lateness(progress, end) == pytest.approx(late)


@pytest.mark.parametrize("at", [3.5, 11.0])
def test_a_rate_that_is_kept_is_not_hopeless(at):
    """It is hopeless neither early in the window nor at its end."""
    assert not followed(state(1000.0), at, 1000.0).is_hopeless(at)


def test_a_backlog_that_grows_fast_is_hopeless():
    """More than a quarter of what was offered since the window began; a smaller share may come to a good end."""
    assert followed(state(1000.0), 8.0, 500.0).is_hopeless(8.0)
    assert not followed(state(1000.0), 8.0, 850.0).is_hopeless(8.0)


def test_a_backlog_that_a_burst_leaves_is_not_hopeless():
    """It may be worked off before the next one."""
    bursts = {"arrivals": "bursts", "profile": ((5.5, 0.1), (5.5, 1.9))}
    trial = followed(state(1000.0, **bursts), 11.0, 300.0)
    assert trial.rows.backlog > 0.25 * 10_000 + 10
    assert not trial.is_hopeless(11.0)
    assert followed(state(1000.0, memory=2e6, **bursts), 11.0, 300.0).is_hopeless(11.0)


def test_nothing_is_hopeless_in_the_first_two_seconds():
    """There is too little to look at."""
    assert not followed(state(1000.0), 2.9, 100.0).is_hopeless(2.9)
    assert followed(state(1000.0), 3.5, 100.0).is_hopeless(3.5)


def test_a_system_without_any_result_is_given_ten_seconds_more():
    """It may have a long latency; its backlog tells nothing until then."""
    trial, hopeless = state(1000.0), []
    for row in range(1, 200):
        trial.rows.add(row / 10, 100 * row, 100 * row, 0)
        hopeless.append(trial.is_hopeless(row / 10))
    assert not any(hopeless[:119])
    assert all(hopeless[160:])


@pytest.mark.parametrize("latency", [1.5, 3.0, 6.0])
def test_a_latency_is_no_growth(latency):
    """The backlog is rate x latency, whatever the capacity is."""
    trial = state(1000.0)
    for row in range(1, 300):
        at = row / 10
        trial.rows.add(at, int(1000 * at), int(1000 * at), max(0, int(1000 * (at - latency))))
        assert not trial.is_hopeless(at)


@pytest.mark.parametrize(("begin", "seconds"), [(2.5, 1.5), (5.0, 3.0), (10.0, 5.0)])
def test_a_pause_that_a_system_makes_up_for_is_no_growth(begin, seconds):
    """While it lasts nothing is known, and then the backlog falls: here ten times as fast as messages come."""
    trial = state(1000.0)
    for row in range(1, 300):
        at = row / 10
        done = min(at, begin) + max(0.0, 10 * (at - begin - seconds))
        trial.rows.add(at, int(1000 * at), int(1000 * at), int(1000 * min(at, done)))
        assert not trial.is_hopeless(at)


def test_messages_that_wait_for_their_batch_are_no_backlog():
    """A framework with batches is given three of them."""
    assert not followed(state(1000.0, batch_interval=3.0), 6.0, 0.0).is_hopeless(6.0)


def test_a_backlog_that_does_not_fit_on_the_machine_is_hopeless_at_once():
    """It need not be looked at for two seconds."""
    memory = 1500 * 100 / MAX_MEMORY_SHARE
    assert followed(state(1000.0, memory=0.9 * memory), 1.5, 0.0).is_hopeless(1.5)
    assert not followed(state(1000.0, memory=1.1 * memory), 1.5, 0.0).is_hopeless(1.5)


def test_a_latency_of_seconds_is_not_hopeless_at_any_bandwidth():
    """At 2 GB/s a backlog of 3 s does not fit into the memory of one machine, but a cluster's source holds it."""
    trial = state(2000.0, message_bytes=10**6)
    for at in (0.0, 3.0, 4.0, 6.0, 8.0):
        trial.add_report(processed(trial.processed, max(0, int(2000 * (at - 3)) - trial.processed), at=at))
        trial.add_row(at, moved=True)
        assert not trial.is_hopeless(at)


def test_a_backlog_of_many_seconds_of_load_is_hopeless():
    """A long backlog is hopeless even if the source could hold it."""
    trial = state(1000.0, window=60.0)
    trial.add_row(MAX_BACKLOG_S + 0.1, moved=False)
    assert trial.is_hopeless(0.0)


def test_a_traced_trial_keeps_spans_also_of_workers_without_messages():
    """A report of none is no progress."""
    spans = TraceEvents([Span("w", "idle(source)", round((BEGIN + 1) * 1e9), round((BEGIN + 2) * 1e9))])
    trial = TrialState(state().planned, state().spec, 0.0, traced=True)
    assert not trial.add_report(ProcessingReport(BEGIN + 2, -1, [], trace=spans))
    assert trial.add_report(replace(processed(0, 5), trace=spans))
    assert [(span.begin, span.end) for span in trial.trace_events().spans] == [(10**9, 2 * 10**9)] * 2
    assert (len(state().trace_events()), trial.processed) == (0, 5)


def test_what_is_processed_again_hides_no_message_that_waits():
    """A trial ends when each message was processed, and not when as many were as were sent."""
    trial = state()
    trial.add_progress(sent(20, done=True))
    trial.add_report(ProcessingReport(BEGIN + 1.0, 8, [sum_range(0, 10)]))
    trial.add_report(ProcessingReport(BEGIN + 2.0, 8, [sum_range(0, 10)], restart=1))
    assert (trial.processed, trial.is_exact, trial.losses()) == (10, False, (10, 0))
    trial.add_report(ProcessingReport(BEGIN + 3.0, 8, [sum_range(0, 20)], restart=2))
    assert (trial.processed, trial.is_exact, trial.counts.processed_again) == (20, True, 20)


@pytest.mark.parametrize(
    ("done", "quiet", "idle", "settled"),
    [(100, 1.5, False, True), (90, 1.5, True, False), (90, 11.0, False, False), (90, 11.0, True, True)],
    ids=["all counted", "just quiet", "still working", "idle"],
)
def test_what_is_missing_when_a_framework_is_idle_is_lost(done, quiet, idle, settled):
    """One that works on may still process it; where as many were processed as were sent, nothing more is awaited."""
    trial = state()
    trial.add_progress(sent(100, done=True))
    trial.add_report(processed(0, done))
    assert trial.has_settled(quiet, lambda: idle) == settled


def test_a_framework_whose_workers_change_may_be_idle_for_long():
    """They start slowly on a busy machine, and what waits for them is not lost."""
    trial = state()
    trial.planned = replace(trial.planned, purpose="elasticity")
    trial.add_progress(sent(100, done=True))
    trial.add_report(processed(0, 90))
    assert not trial.has_settled(60.0, lambda: True)


def test_a_generator_that_stood_still_at_the_end_of_the_window_was_late():
    """It said nothing then; its next report tells how long it stood."""
    trial, last = state(), sent(800, at=8.0)
    trial.add_progress(last)
    assert trial.lateness(last, 11.0) == 0
    trial.add_progress(replace(sent(1100, at=12.5, done=True), stalled=4.5))
    assert (trial.lateness(last, 11.0), trial.stalled(last, 11.0)) == (3.0, 4.5)


@pytest.mark.parametrize(("at", "stalled"), [(8.0, 0.0), (10.9, 4.5)], ids=["on time later", "not silent"])
def test_a_generator_that_did_not_stand_still_was_not_late(at, stalled):
    """A report that was late on its way, and a stall after the window, say nothing of it."""
    trial, last = state(), sent(1000, at=at)
    trial.add_progress(last)
    trial.add_progress(replace(sent(1100, at=12.5, done=True), stalled=stalled))
    assert (trial.lateness(last, 11.0), trial.stalled(last, 11.0)) == (0.0, 0.0)


def test_of_several_workers_the_one_that_is_silent_counts():
    """The others go on to report that they are on time."""
    together = SendProgressSum(2)
    together.add(sent(100, at=1.0))
    seen = [together.add(replace(sent(count, at=at), producer=1)) for count, at in ((100, 1.0), (900, 9.0))]
    assert [one.at - BEGIN for one in seen if one is not None] == [1.0, 1.0]
