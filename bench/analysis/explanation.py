"""The explanation of a trial: its critical path by activity, operator, worker and channel, and one sentence."""

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from bench.analysis.activity_graph import summaries
from bench.analysis.activity_graph.participation import Participation
from bench.analysis.activity_graph.windows import Windows
from bench.analysis.advice import ChangeAdvice, advise, find_straggler, write_sentence
from bench.model.measurement import Measurement
from bench.model.trace import TraceSample

MIN_WINDOW_S, MIN_WINDOW_BATCHES = 0.25, 1.0
"""Seconds of a window, and batch intervals in it, whichever takes longer."""
MAX_WINDOWS = 40
SUMS = frozenset({"blocked_s"})
"""Sampled metrics that only grow, so that their mean says nothing."""
_NS = 10**9


class ActivityShare(Struct, frozen=True):
    """An activity's share of the critical path, and of the busy time of all workers (the conventional profile)."""

    activity: str
    critical: float
    profile: float | None = None
    """None for messages, idling and waiting, which no profile shows"""


class MessageShare(Struct, frozen=True):
    """Messages from one worker to another, and their share of the critical path."""

    sender: str
    receiver: str
    critical: float


class SampleMean(Struct, frozen=True):
    """The mean of what was sampled of an entity within the windows: counters of clients, and of Flink's tasks."""

    entity: str
    metric: str
    """with its unit; a share without one"""
    mean: float


class Explanation(Struct, frozen=True):
    """The limits of a trial by its trace; shares are of the critical path, the largest first."""

    activities: tuple[ActivityShare, ...]
    operators: dict[str, float]
    """each divided by the number of its workers; without idling"""
    workers: dict[str, float]
    """without idling"""
    channels: tuple[MessageShare, ...]
    advice: ChangeAdvice
    straggler: str | None
    sentence: str
    windows: int
    connected: int
    """windows with a path from begin to end; the others count for nothing"""

    @property
    def shares(self) -> dict[str, float]:
        """Return the critical participation of each activity."""
        return {one.activity: one.critical for one in self.activities}


def analysis_windows(measurement: Measurement) -> Windows:
    """Return the windows of a trial's measured window: at most MAX_WINDOWS, each of a batch interval at least."""
    planned, span = measurement.planned, measurement.window_s
    begin = planned.settle
    if span <= 0:  # given up before the window
        begin, span = 0.0, max(MIN_WINDOW_S, min(planned.settle, measurement.seconds))
    shortest = max(MIN_WINDOW_S, MIN_WINDOW_BATCHES * measurement.batch_interval, span / MAX_WINDOWS)
    count = max(1, int(span / shortest + 1e-9))
    return Windows(round(begin * _NS), max(1, round(span * _NS / count)), count)


def mean_samples(samples: Iterable[TraceSample], windows: Windows) -> tuple[SampleMean, ...]:
    """Return the mean of each metric of each entity within the windows, by entity; not of those that only grow."""
    end = windows.begin + windows.length * windows.count
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in samples:
        if windows.begin <= one.at <= end and one.metric not in SUMS:
            values[one.entity, one.metric].append(one.value)
    return tuple(SampleMean(*key, sum(each) / len(each)) for key, each in sorted(values.items()))


def explain(participation: Participation, *, batches: bool, overloaded: bool) -> Explanation:
    """Return what the trace of a trial says.

    Args:
        participation: of its windows.
        batches: whether the framework works in batches.
        overloaded: whether the trial was overloaded.
    """
    shares, profile = summaries.sum_by_activity(participation), summaries.profile_by_activity(participation)
    workers = summaries.sum_by_worker(participation)
    straggler = find_straggler(
        workers, summaries.busy_by_worker(participation), summaries.idle_by_worker(participation),
        main_operators(participation),
    )  # fmt: skip
    advice = advise(shares, batches=batches, overloaded=overloaded, straggler=straggler)
    channels = summaries.sum_by_channel(participation)
    return Explanation(
        tuple(ActivityShare(name, share, profile.get(name)) for name, share in shares.items()),
        summaries.sum_by_operator(participation),
        workers,
        tuple(MessageShare(*ends, share) for ends, share in channels.items()),
        advice,
        straggler[0] if straggler is not None else None,
        write_sentence(shares, advice, straggler),
        participation.windows.count,
        int(participation.connected.sum()),
    )


def main_operators(participation: Participation) -> dict[str, str]:
    """Return the operator that each worker executes for most of its time."""
    times: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for group, busy in zip(participation.groups, summaries.sum_times(participation).tolist(), strict=True):
        if group.operator:
            times[group.worker][group.operator] += busy
    return {worker: max(of_worker, key=of_worker.__getitem__) for worker, of_worker in times.items()}
