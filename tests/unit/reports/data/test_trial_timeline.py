"""The counters of a trial, thinned for a drawing."""

from sample_runs import make_measurement

from bench.analysis.verdict import Verdict
from bench.model.measurement import Series
from reports.data.run_data import JudgedTrial
from reports.data.trial_timeline import make_trial_timeline


def test_a_thinned_timeline_keeps_its_peaks() -> None:
    """The largest backlog of a long trial is drawn."""
    at = [0.1 * n for n in range(5000)]
    processed = [0 if n == 3333 else n for n in range(5000)]
    counts = list(range(5000))
    trial = JudgedTrial(
        make_measurement(0, 10.0, 10.0, series=Series(at, counts, counts, processed)), Verdict("sustained")
    )
    timeline = make_trial_timeline(trial)
    assert len(timeline.at) <= 200
    assert max(timeline.backlog) == 3333
