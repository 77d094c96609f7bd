"""Traces of real frameworks: in every window with a path the shares add up to one, and burnt CPU time is on it."""

import time
from contextlib import ExitStack, closing

import numpy as np
import pytest

from bench.analysis.activity_graph.events import make_events
from bench.analysis.activity_graph.participation import Participation, compute_participation
from bench.analysis.activity_graph.summaries import sum_by_activity
from bench.analysis.activity_graph.windows import Windows
from bench.model.cell import Cell
from bench.plugins import registry
from bench.runner.trial_trace import TrialTrace
from bench.workload.load_spec import LoadSpec
from bench.workload.processing import MessageProcessor

SIZE, ENTROPY, COST = 1000, 0.5, 0.004
RATE, SECONDS = 200.0, 6
DEADLINE_S = 120.0
WINDOWS = 4


def participate(env, framework: str, source: str) -> Participation:
    """Return the critical participation in four windows of a load that takes 0.8 of a core, and of what it leaves."""
    cell, work = Cell(framework, source, SIZE, COST), MessageProcessor(SIZE, ENTROPY, traced=True)
    with ExitStack() as opened:
        endpoint_source = registry.make_source(source, {})
        opened.callback(endpoint_source.close)
        endpoint = endpoint_source.open(cell, env)
        load = opened.enter_context(closing(registry.load_generator_plugin("inline").open(endpoint, env, 1)))
        running = opened.enter_context(closing(registry.make_framework(framework, {}).open(cell, endpoint, work, env)))
        begin, deadline = time.monotonic() + 0.05, time.monotonic() + DEADLINE_S
        load.start(LoadSpec(1, RATE, begin, SECONDS, message_bytes=SIZE, cpu_seconds=COST, entropy=ENTROPY))
        trace, processed = TrialTrace(begin), 0
        while processed < RATE * SECONDS:
            assert time.monotonic() < deadline, f"{processed} messages were processed"
            for report in running.poll():
                processed += report.count + report.corrupted
                if report.trace is not None:
                    trace.add(report.trace)
            load.poll()
            time.sleep(0.01)
    events = trace.events()
    begin_ns, end_ns = min(span.begin for span in events.spans), max(span.end for span in events.spans)
    windows = Windows(begin_ns, -(-(end_ns - begin_ns) // WINDOWS), WINDOWS)
    return compute_participation(make_events(events.spans, events.messages), windows)


@pytest.mark.parametrize(
    ("framework", "source"),
    [
        ("python", "files"),
        ("harmonicio", "stream"),
        pytest.param("spark", "files", marks=pytest.mark.real),
        pytest.param("spark", "tcp", marks=pytest.mark.real),
    ],
    ids=["python", "harmonicio", "structured streaming", "dstreams"],
)
def test_the_shares_of_a_real_trace_add_up_to_one(env, framework, source):
    """Of every window that has a path; the messages' CPU cost has a part of it."""
    found = participate(env, framework, source)
    sums = found.critical.sum(axis=1)
    assert found.connected.any()
    assert np.abs(sums[found.connected] - 1).max() < 1e-6
    assert not sums[~found.connected].any()
    assert sum_by_activity(found)["processing"] > 0.1
