"""A campaign is decided by its seed, and what it finds is judged and summed up by rules."""

from itertools import islice

import pytest
from msgspec.structs import replace

from bench.config.validation import parse_scenario
from bench.config.yaml_document import read_document
from bench.model.cell import Cell
from bench.plugins.scenario_check import check_scenario
from bench.runner.outcome import without_rate
from bench.storage.records import JournalEntry
from tests.campaign import invariants, report
from tests.campaign.faults import Fault, plan_attempts
from tests.campaign.histories import MESSAGES
from tests.campaign.mutation import Mutator
from tests.campaign.outcomes import (
    HARNESS_BAR,
    MESSAGES_BAR,
    OTHERS_BAR,
    AttemptRecord,
    FaultRecord,
    HistoryRecord,
    Log,
    figures_of,
    read_log,
    summary,
    violations_of,
)
from tests.campaign.subjects import KNOWN_SYSTEM, SUBJECTS
from tests.sample_runs import make_measurement

KILL, TERMINATE = Fault("kill", "harness", 1, 0.5), Fault("terminate", "harness", 9, 0.5)
WORKER_KILL = Fault("kill", "framework", 1, 0.5)
EARLY = Fault("terminate", "harness", 0.5, 0.5)
FULL, CGROUP = Fault("disk full", "run folder", 1, 0.5), Fault("small cgroup", "machine", 1, 0.5)


def plan(seed, count=200, *, is_root=True):
    return list(islice(plan_attempts(seed, SUBJECTS, is_root=is_root), count))


def test_the_same_seed_gives_the_same_attempts():
    """And another seed others."""
    assert plan(7) == plan(7)
    assert plan(7) != plan(8)


def test_every_victim_and_every_kind_has_its_turn():
    """Four thousand attempts leave none out."""
    faults = [fault for attempt in plan(1, 4000) for fault in attempt.faults]
    victims = {"harness", "load", "source", "framework", "PE", "connector", "master", "network", "clock"}
    assert {fault.victim for fault in faults} >= victims
    kinds = {"kill", "terminate", "stop", "disk full", "data full", "edited file", "no Java", "cut", "halved", "slow"}
    assert {fault.kind for fault in faults} >= kinds | {"small cgroup"}
    assert {fault.victim for fault in faults if fault.kind == "few descriptors"} >= {
        "machine",
        "master",
        "worker",
        "PE",
    }


def test_an_hour_has_the_kills_and_the_messages_by_design():
    """A hundred attempts plan more than the bars; as many fit into an hour, and runs end before some faults."""
    attempts = plan(1, 100)
    own = [fault for one in attempts for fault in one.faults if fault.victim == "harness" and fault.kind == "kill"]
    histories = [fault for one in attempts if one.subject == "history" for fault in one.faults]
    assert len(own) >= 1.5 * HARNESS_BAR
    assert len(histories) >= 1.5 * OTHERS_BAR
    assert len(histories) * MESSAGES >= 1.5 * MESSAGES_BAR


def test_without_root_no_disk_is_mounted():
    """Its other faults remain."""
    kinds = {fault.kind for attempt in plan(1, 1000, is_root=False) for fault in attempt.faults}
    assert not kinds & {"disk full", "read only", "data full", "small cgroup", "cut", "halved", "slow"}
    assert "torn line" in kinds


def test_without_a_clock_of_their_own_no_clock_steps():
    """Neither in a run nor in a history."""
    attempts = islice(plan_attempts(1, SUBJECTS, is_root=True, own_clock=False), 1000)
    assert "clock stepped" not in {fault.kind for attempt in attempts for fault in attempt.faults}


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_every_subject_is_a_right_scenario(subject, tmp_path):
    """`bench check` accepts it."""
    path = tmp_path / "scenario.yaml"
    path.write_text(subject.scenario)
    document = read_document(path)
    check_scenario(document, parse_scenario(document))


@pytest.mark.parametrize(
    ("fault", "code", "output", "begun"),
    [(KILL, -9, "", True), (TERMINATE, 130, "go on with --resume x", True), (EARLY, -15, "", True),
     (EARLY, -2, "interrupted", True), (EARLY, 130, "interrupted", True), (TERMINATE, -15, "", True),
     (FULL, 2, "cannot be written (No space left on device)", True), (None, 4, "", True), (CGROUP, -9, "", True),
     (TERMINATE, -15, "2 cells, 0 without a result, 2 s, of which 62% measured: x", True)],
)  # fmt: skip
def test_an_ending_that_says_what_happened_is_right(fault, code, output, begun):
    """Of a kill nothing can be said, and a run that nobody ended went through all cells."""
    assert invariants.check_ending(fault, code, output, begun=begun) == []


@pytest.mark.parametrize(
    ("fault", "code", "output"),
    [(TERMINATE, 130, "run folder: x\ninterrupted"), (TERMINATE, -15, "run folder: x"), (TERMINATE, 1, "x"),
     (FULL, 3, "it failed"), (None, 3, "x"), (None, None, ""), (CGROUP, 3, "it failed"), (FULL, -9, ""),
     (None, 0, "Traceback (most recent call last)\nKeyError: 1")],
)  # fmt: skip
def test_an_ending_that_says_too_little_is_a_violation(fault, code, output):
    """Also a traceback, whatever the exit code is."""
    assert invariants.check_ending(fault, code, output, begun=True)


def test_a_journal_only_grows():
    """The part of a line that a killed harness wrote may go."""
    assert invariants.check_journal(b"a\nb\npart", b"a\nb\nc\n", "journal") == []
    assert invariants.check_journal(b"a\nb\n", b"a\nB\nc\n", "journal")


@pytest.mark.parametrize(("trials", "violations"), [(0, 1), (9, 0)], ids=["an error", "its trials"])
def test_a_cell_that_was_hit_may_fail_by_its_trials_only(trials, violations):
    """The run went on without a fault, so that no error may be left that ended a cell."""
    cell = Cell("python", "kafka", 100, 0.0)
    failed = replace(without_rate(cell, "failed", "the broker died"), trials=trials)
    assert len(invariants.check_results(SUBJECTS[0], [failed], [], {"source"}, 1)) == violations


def test_a_death_belongs_to_a_cell_whose_process_was_hit():
    """The cell in the process of the harness has none, and without a hit nothing dies."""
    known, other = (Cell(*KNOWN_SYSTEM.split("/"), 100, 0.0), Cell("python", "kafka", 100, 0.0))
    assert invariants.check_deaths([(other, "source died"), (known, "complete")], {"source"}) == []
    assert invariants.check_deaths([(known, "source died")], {"source"})
    assert invariants.check_deaths([(other, "source died")], ())


@pytest.mark.parametrize(
    ("lost", "failed", "duplicated", "faults", "violations"),
    [
        (2, 2, 0, (), 0),
        (2, 1, 0, (WORKER_KILL,), 1),
        (2, 1, 0, (replace(WORKER_KILL, kind="stop"),), 0),
        (0, 0, 3, (), 1),
        (0, 0, 3, (WORKER_KILL,), 0),
        (0, 0, 3, (KILL,), 1),
    ],
    ids=["refused", "lost", "stopped", "twice", "twice after a kill", "twice after one of the harness"],
)
def test_messages_are_processed_once_unless_a_process_was_hit(lost, failed, duplicated, faults, violations):
    """What the source refused is no loss, and a process that is stopped seems to have nothing left."""
    measurement = make_measurement(0, 90.0, 90.0, lost=lost, failed=failed, duplicated=duplicated)
    cell = Cell("spark", "kafka", 1000, 0.01)
    delivered = invariants.count_deliveries(7, [JournalEntry(2, cell, measurement)])
    assert [(one.system, one.lost, one.duplicated) for one in delivered] == [("spark/kafka", lost - failed, duplicated)]
    assert len(invariants.check_deliveries(delivered, faults)) == violations


def test_a_log_is_read_without_its_torn_end_and_summed_up(tmp_path):
    """The summary has the faults, the messages and the violations."""
    log = Log(tmp_path / "log.jsonl")
    log.add(FaultRecord(1, "known", "kill", "harness", "bench 7", 1.5, ended=True))
    log.add(FaultRecord(2, "spark", "kill", "framework", "spark driver (JVM) 9", 1.5, ended=True))
    log.add(AttemptRecord(1, "known", 60.0, 0, "", ("it broke",)))
    log.add(HistoryRecord(2, 30.0, 2000, 1990, 2000, 5, 0, ()))
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write(b'{"type":"fau')
    records = read_log(tmp_path / "log.jsonl")
    text = summary(records)
    assert "| harness | kill | 1 |" in text
    assert "| framework: spark driver (JVM) | kill | 1 |" in text
    assert "| messages acknowledged in them, checked one by one | 1,990 | 119,400 | 10,000,000 |" in text
    assert (figures_of(records).harness_killed, figures_of(records).others_hit) == (1, 1)
    assert violations_of(records) == ["attempt 1: it broke"]


def test_the_figures_stand_between_the_marks_of_the_page():
    """The rest of the page stays as it is."""
    page = report.replaced(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", "new")
    assert page == f"before\n{report.BEGIN}\n\nnew\n{report.END}\nafter\n"


def test_invented_inputs_follow_from_the_seed():
    """So that a failure can be repeated."""
    draws = [[Mutator([b"a valid input 12"], seed).draw() for seed in (1, 1, 2)] for _ in range(2)]
    assert draws[0] == draws[1]
    assert draws[0][0] == draws[0][1]
