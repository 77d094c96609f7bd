"""Sums of critical participation by activity, operator, worker and channel (section 6 of the paper)."""

from collections import defaultdict
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bench.analysis.activity_graph.participation import EdgeGroup, Participation
from bench.model.trace import MESSAGE_KINDS

IDLE = ("idle(trigger)", "idle(source)")
"""Activities of a worker that has nothing to do."""


def sum_by_activity(participation: Participation) -> dict[str, float]:
    """Return the critical participation of each activity and kind of message, the largest first; its sum is 1."""
    return _sum_by(participation, participation.mean, lambda group: group.activity)


def sum_by_worker(participation: Participation) -> dict[str, float]:
    """Return the critical participation of each worker's own activities, without idling, the largest first."""
    return _sum_by(
        participation,
        participation.mean,
        lambda group: None if is_message(group) or group.activity in IDLE else group.worker,
    )


def sum_by_operator(participation: Participation) -> dict[str, float]:
    """Return the critical participation of each operator, divided by the number of its workers, without idling."""
    workers: dict[str, set[str]] = defaultdict(set)
    for group in participation.groups:
        if not is_message(group):
            workers[group.operator].add(group.worker)
    sums = _sum_by(
        participation,
        participation.mean,
        lambda group: None if is_message(group) or group.activity in IDLE else group.operator,
    )
    return {operator: share / len(workers[operator]) for operator, share in sums.items() if operator}


def sum_by_channel(participation: Participation) -> dict[tuple[str, str], float]:
    """Return the critical participation of the messages from one worker to another, the largest first."""
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for group, share in zip(participation.groups, participation.mean.tolist(), strict=True):
        if is_message(group):
            sums[group.worker, group.receiver] += share
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def profile_by_activity(participation: Participation) -> dict[str, float]:
    """Return the conventional profile: each activity's share of the time in which workers neither wait nor idle."""
    sums = _sum_by(
        participation,
        sum_times(participation),
        lambda group: None if is_message(group) or group.activity in (*IDLE, "waiting") else group.activity,
    )
    total = sum(sums.values())
    return {activity: time / total for activity, time in sums.items()} if total else {}


def busy_by_worker(participation: Participation) -> dict[str, float]:
    """Return the nanoseconds in which each worker neither waits nor idles, the busiest first."""
    return _sum_by(
        participation,
        sum_times(participation),
        lambda group: None if is_message(group) or group.activity in IDLE else group.worker,
    )


def idle_by_worker(participation: Participation) -> dict[str, float]:
    """Return the nanoseconds in which each worker idles, the most idle first."""
    return _sum_by(
        participation, sum_times(participation), lambda group: group.worker if group.activity in IDLE else None
    )


def sum_times(participation: Participation) -> NDArray[np.float64]:
    """Return the nanoseconds of each group in the windows that have a path, which the shares are of; else in all."""
    connected = participation.connected
    times: NDArray[np.float64] = participation.busy_ns[connected if connected.any() else ~connected].sum(axis=0)
    return times


def activities_over_time(participation: Participation) -> dict[str, NDArray[np.float64]]:
    """Return the critical participation of each activity in each window, the largest on average first."""
    rows: dict[str, NDArray[np.float64]] = {}
    for group, column in zip(participation.groups, participation.critical.T, strict=True):
        rows[group.activity] = rows[group.activity] + column if group.activity in rows else column
    return dict(sorted(rows.items(), key=lambda item: -float(item[1].sum())))


def is_message(group: EdgeGroup) -> bool:
    """Return whether a group is of messages."""
    return group.activity in MESSAGE_KINDS


def _sum_by(
    participation: Participation, values: NDArray[np.float64], key: Callable[[EdgeGroup], str | None]
) -> dict[str, float]:
    """Return the sum of the values of all groups of a key, the largest first; groups without a key are left out."""
    sums: dict[str, float] = defaultdict(float)
    for group, value in zip(participation.groups, values.tolist(), strict=True):
        name = key(group)
        if name is not None:
            sums[name] += value
    return dict(sorted(sums.items(), key=lambda item: -item[1]))
