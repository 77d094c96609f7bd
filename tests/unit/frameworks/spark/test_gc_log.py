"""Pauses of a JVM are read from its log, and make parts of spans `gc`."""

import subprocess
import time

import pytest

from bench.model.trace import Span
from frameworks.spark.gc_log import OPTION, GcLog, split_spans

PAUSES = [(20, 30), (45, 60)]
LINES = """\
[1000000000ns] Using G1
[2000000000ns] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 2.500ms
[3000000000ns] GC(1) Concurrent Mark Cycle 12.345ms
[4000000000ns] GC(1) Pause Remark 31M->31M(256M) 1.000ms
"""


def test_the_log_gives_each_pause_once(tmp_path):
    """What other lines say is no pause; a line that is not whole yet is read when it is."""
    path = tmp_path / "gc.log"
    log = GcLog(path)
    assert log.read() == []
    path.write_text(LINES[:-10])
    assert log.read() == [(1_997_500_000, 2_000_000_000)]
    path.write_text(LINES)
    assert log.read() == [(3_999_000_000, 4_000_000_000)]
    assert log.read() == []


def test_what_was_logged_before_is_left_out(tmp_path):
    """A session has a log, and each query begins at its end."""
    path = tmp_path / "gc.log"
    path.write_text(LINES)
    assert GcLog(path).read() == []


@pytest.mark.real
def test_pauses_of_a_jvm_have_our_clock(tmp_path):
    """System.nanoTime is CLOCK_MONOTONIC: a pause lies between the start of the JVM and its end."""
    program = tmp_path / "Collect.java"
    program.write_text("class Collect { public static void main(String[] given) { System.gc(); } }")
    log, began = GcLog(tmp_path / "gc.log"), time.monotonic_ns()
    subprocess.run(["java", OPTION, program.name], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    pauses = log.read()
    assert pauses
    assert all(began < begin < end < time.monotonic_ns() for begin, end in pauses)


@pytest.mark.parametrize(
    ("begin", "end", "parts"),
    [
        (0, 10, [("planning", 0, 10)]),
        (10, 50, [("planning", 10, 20), ("gc", 20, 30), ("planning", 30, 45), ("gc", 45, 50)]),
        (22, 28, [("gc", 22, 28)]),
        (30, 45, [("planning", 30, 45)]),
        (25, 25, [("planning", 25, 25)]),
    ],
    ids=["before", "across", "within", "between", "empty"],
)
def test_a_part_within_a_pause_is_garbage_collection(begin, end, parts):
    """The parts follow one another, and the first one has the messages."""
    found = split_spans([Span("driver", "planning", begin, end, "plan", 7)], PAUSES, ("planning",))
    assert [(one.activity, one.begin, one.end) for one in found] == parts
    assert [one.messages for one in found] == [7] + [0] * (len(parts) - 1)


def test_other_activities_go_on_meanwhile():
    """A Python worker does not stop for the JVM."""
    span = Span("task 0", "processing", 0, 100)
    assert split_spans([span], PAUSES, ("source-read",)) == [span]
