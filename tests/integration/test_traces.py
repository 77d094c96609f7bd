"""Traces of real frameworks: in every window with a path the shares add up to one, and burnt CPU time is on it."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import cache
from typing import Any

import numpy as np
import pytest

from bench.analysis.activity_graph.events import make_events
from bench.analysis.activity_graph.participation import Participation, compute_participation
from bench.analysis.activity_graph.summaries import sum_by_activity, sum_by_channel
from bench.analysis.activity_graph.windows import Windows
from bench.model.cell import Cell
from bench.model.trace import TraceEvents
from bench.plugins import registry
from bench.plugins.environments import environments
from bench.runner.trial_trace import TrialTrace
from bench.services.python_environments import missing_reason
from bench.workload.load_spec import LoadSpec
from bench.workload.processing import MessageProcessor

SIZE, ENTROPY, COST = 1000, 0.5, 0.004
RATE, SECONDS = 200.0, 6
DEADLINE_S = 120.0
WINDOWS = 4
SMALL_YOUNG = {"spark": {"conf": {"spark.driver.extraJavaOptions": "-Xmn8m"}}}
"""A young generation so small that it is collected every second."""


@pytest.fixture(scope="module")
def trace_of(env) -> Callable[[str, str, int], TraceEvents]:
    """Returns the trace of the usual load on a system, for so many seconds; tests that ask for the same share it."""

    @cache
    def trace(framework: str, source: str, seconds: int) -> TraceEvents:
        settings = SMALL_YOUNG if (framework, source) == ("spark", "files") else {}
        return trace_load(env, framework, source, seconds=seconds, settings=settings)

    return trace


def trace_load(
    env,
    framework: str,
    source: str,
    *,
    rate: float = RATE,
    seconds: float = SECONDS,
    cost: float = COST,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> TraceEvents:
    """Return the trace of a load that takes 0.8 of a core unless rate or cost are given, and of what it leaves."""
    given = settings or {}
    cell, work = Cell(framework, source, SIZE, cost), MessageProcessor(SIZE, ENTROPY, traced=True)
    with ExitStack() as opened:
        endpoint_source = registry.make_source(source, given)
        opened.callback(endpoint_source.close)
        endpoint = endpoint_source.open(cell, env)
        load = opened.enter_context(closing(registry.load_generator_plugin("inline").open(endpoint, env, 1)))
        opening = registry.make_framework(framework, given).open(cell, endpoint, work, env)
        running = opened.enter_context(closing(opening))
        begin, deadline = time.monotonic() + 0.05, time.monotonic() + DEADLINE_S
        load.start(LoadSpec(1, rate, begin, seconds, SIZE, cpu_seconds=cost, entropy=ENTROPY, traced=True))
        trace, processed = TrialTrace(begin), 0
        while processed < rate * seconds:
            assert time.monotonic() < deadline, f"{processed} messages were processed"
            for report in running.poll():
                processed += report.count + report.corrupted
                if report.trace is not None:
                    trace.add(report.trace)
            for progress in load.poll():
                trace.add_progress(progress)
            time.sleep(0.01)
    return trace.events()


def participate(events: TraceEvents) -> Participation:
    """Return the critical participation in four windows, up to the moment until which every worker has reported.

    Workers report some time apart: behind it, the send of a message for which another worker waited may be missing.
    """
    reported: dict[str, int] = {}
    for span in events.spans:
        reported[span.worker] = max(span.end, reported.get(span.worker, 0))
    begin_ns, end_ns = min(span.begin for span in events.spans), min(reported.values())
    windows = Windows(begin_ns, (end_ns - begin_ns) // WINDOWS, WINDOWS)
    return compute_participation(make_events(events.spans, events.messages), windows)


@pytest.mark.parametrize(
    ("framework", "source", "seconds"),
    [
        ("python", "files", 3),
        ("harmonicio", "stream", SECONDS),
        pytest.param("spark", "files", SECONDS, marks=pytest.mark.real),
        pytest.param("spark", "tcp", SECONDS, marks=pytest.mark.real),
    ],
    ids=["python", "harmonicio", "structured streaming", "dstreams"],
)
def test_the_shares_of_a_real_trace_add_up_to_one(trace_of, framework, source, seconds):
    """Of every window that has a path; the messages' CPU cost has a part of it."""
    check_shares(trace_of(framework, source, seconds))


def check_shares(events: TraceEvents) -> None:
    found = participate(events)
    sums = found.critical.sum(axis=1)
    assert found.connected.any()
    assert np.abs(sums[found.connected] - 1).max() < 1e-6
    assert not sums[~found.connected].any()
    assert sum_by_activity(found)["processing"] > 0.1


@pytest.mark.real
def test_pauses_of_sparks_jvm_are_in_its_trace(trace_of):
    """The young generation is so small that it is collected every second."""
    events = trace_of("spark", "files", SECONDS)
    assert any(span.activity == "gc" and span.worker == "driver" for span in events.spans)


@pytest.mark.real
@pytest.mark.parametrize(
    ("source", "settings", "sender", "worker"),
    [
        (
            "kafka",
            {},
            {"round_trip_s", "queued_s", "waiting_messages"},
            {"round_trip_s", "fetched_messages"},
        ),
        ("kafka", {"kafka": {"client": "kafka-python"}}, {"round_trip_s", "queued_s"}, {"round_trip_s"}),
        ("pulsar", {}, {"waiting_messages"}, set()),
    ],
    ids=["librdkafka", "kafka-python", "pulsar"],
)
def test_the_clients_of_a_source_say_what_they_measure(env, source, settings, sender, worker):
    """As samples of the trace."""
    events = trace_load(env, "python", source, cost=0.0, settings=settings)
    found = {
        entity: {one.metric for one in events.samples if one.entity == entity} for entity in ("sender 0", "worker 0")
    }
    assert found["sender 0"] >= sender
    assert found["worker 0"] >= worker
    trips = [one.value for one in events.samples if one.metric == "round_trip_s"]
    assert all(0 <= seconds < DEADLINE_S for seconds in trips)


@pytest.mark.real
def test_the_shares_of_bytewax_add_up_to_one_and_it_says_how_far_it_lags(env):
    """The lag is a sample of each of its processes."""
    if (reason := missing_reason(environments()["bytewax"], env.cache)) is not None:
        pytest.skip(reason)
    events = trace_load(env, "bytewax", "kafka", seconds=3)
    check_shares(events)
    lags = [one for one in events.samples if one.metric == "lag_messages"]
    assert {one.entity for one in lags} == {"process 0", "process 1"}
    assert all(0 <= one.value < RATE * DEADLINE_S for one in lags)


@pytest.mark.parametrize(
    ("source", "sender", "seconds"),
    [("stream", "sender 0", SECONDS), ("files", "bridge 0", 3)],
    ids=["connector", "bridge"],
)
def test_the_critical_path_of_harmonicio_crosses_workers(trace_of, source, sender, seconds):
    """It goes from what holds the connector to the PEs, which wait for it, and every window has a path."""
    found = participate(trace_of("harmonicio", source, seconds))
    pes = {group.worker for group in found.groups if group.worker.startswith("PE ")}
    assert found.connected.all()
    assert {(sender, pe) for pe in pes} <= set(sum_by_channel(found))
    assert {group.activity for group in found.groups if group.worker in pes} >= {"waiting", "processing"}


def test_messages_through_the_queue_of_harmonicio_pass_its_master(env):
    """Hand-outs to the master and from it to the PEs are in the trace, with the time on the disk."""
    overflows = {"stream": {"overflow": "full", "credit_timeout": "50 ms"}}
    events = trace_load(env, "harmonicio", "stream", rate=5 * RATE, seconds=1.5, settings=overflows)
    hops = {(one.kind, one.sender.split()[0], one.receiver.split()[0]) for one in events.messages}
    assert hops >= {("data", "sender", "master"), ("data", "master", "PE"), ("control", "PE", "master")}
    assert {"waiting", "wal-commit", "serialize"} <= {one.activity for one in events.spans if one.worker == "master"}
    sums = participate(events).critical.sum(axis=1)
    assert np.abs(sums[sums > 0] - 1).max() < 1e-6
