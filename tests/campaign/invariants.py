"""What must hold after a fault: pure checks of endings, journals and results; each violation is one line."""

import signal
from collections.abc import Collection, Mapping, Sequence

from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.storage.records import JournalEntry
from tests.campaign.faults import Fault
from tests.campaign.outcomes import DeliveryRecord
from tests.campaign.subjects import KNOWN_SYSTEM, Subject
from tests.measurements import overlap

FINISHED = (0, 4)
"""Exit codes of a run that went through all cells."""
REFUSED = (2, 3)
"""Exit codes with one line about what the user can put right."""
INTERRUPTED = 130
STARTED_S = 4.0
"""After which the verb runs, unless it has said nothing yet."""
TRACEBACK = "Traceback (most recent call last)"
DIED = ("framework died", "source died", "load died")
LEFT_BEHIND = "is of no trial in trials.jsonl"
"""What `bench verify` says of the files of one trial, whose line a killed harness had not written yet."""
_LAST_OF_A_RUN = "without a result, "
_WORDS: Mapping[str, str] = {
    "disk full": "space", "data full": "space", "read only": "ead-only", "no Java": "Java", "old Java": "Java",
    "few descriptors": "open files",
    "little memory": "memory", "small cgroup": "memory",
}  # fmt: skip
"""What the last line must have in it, where a circumstance ends a run."""


def check_ending(fault: Fault | None, code: int | None, output: str, *, begun: bool) -> list[str]:
    """Return what is wrong with how bench ended.

    Args:
        fault: What was done to it; None for a run that nothing ended.
        code: Its exit code, or minus the signal that ended it; None if it had to be killed because it did not end.
        output: All that it printed.
        begun: Whether there is a run folder to resume.
    """
    if code is None:
        return ["bench did not end in time"]
    if fault is not None and fault.kind == "small cgroup" and code == -signal.SIGKILL:
        return []  # the kernel chose it
    last = last_line(output)
    if fault is not None and fault.ends_harness and fault.kind != "terminate":
        return [] if code in (-9, *FINISHED) else [f"exit code {code} after a kill: {last}"]
    found = [f"a traceback that ends with {last!r}"] if TRACEBACK in output else []
    if fault is not None and fault.ends_harness:
        # Before Python had read the program, while the program imported its modules (CPython), or before its verb,
        # which says first where its run folder is.
        may_be_early = fault.after_s < STARTED_S or output.strip() in ("", "interrupted")
        early = may_be_early and (code == -15 or (code in (-2, INTERRUPTED) and last == "interrupted"))
        early = early or (code == -15 and _LAST_OF_A_RUN in last)  # while it exits
        if code not in (INTERRUPTED, *FINISHED) and not early:
            found.append(f"exit code {code} after SIGTERM: {last}")
        if code == INTERRUPTED and begun and not early and "--resume" not in last:
            found.append(f"the last line does not say how to go on: {last!r}")
    elif fault is not None and fault.kind in _WORDS and code in REFUSED:
        if _WORDS[fault.kind] not in last:
            found.append(f"the last line does not name the cause ({fault.kind}): {last!r}")
    elif code not in FINISHED:
        found.append(f"exit code {code}: {last}")
    return found


def check_journal(before: bytes, after: bytes, name: str) -> list[str]:
    """Return a violation unless the whole lines of a journal are the beginning of what it is now."""
    whole = before[: before.rfind(b"\n") + 1]
    return [] if after.startswith(whole) else [f"{name}: {len(whole)} bytes that were there have changed or are gone"]


def check_verification(code: int | None, output: str, *, finished: bool) -> list[str]:
    """Return what `bench verify` found, besides files that a killed harness may leave until it is resumed."""
    differs = [line for line in output.splitlines() if line.startswith("differs")]
    if not finished:
        differs = [line for line in differs if not line.endswith(LEFT_BEHIND)]
        if code == 4 and not differs:
            return []
    if code == 0 and not differs:
        return []
    return [f"verify: {line}" for line in differs[:3]] or [f"verify ended with {code}: {last_line(output)}"]


def check_results(
    subject: Subject, results: Sequence[Result], reference: Sequence[Result], hit: Collection[str], cells: int
) -> list[str]:
    """Return what is wrong with the results of a run that went through all cells.

    Args:
        subject: The run's scenario.
        results: Of the run.
        reference: Of an undisturbed run.
        hit: Roles whose processes were hit; cells that have such processes may have any answer, but none may be left
            that an error ended: nothing was hit when the run went on.
        cells: Of the scenario.
    """
    found = [] if len(results) == cells else [f"{len(results)} results of {cells} cells"]
    undisturbed = {result.cell: result for result in reference}
    for result in results:
        known = result.cell.system == KNOWN_SYSTEM
        was_hit = bool(hit) and not known
        if result.status == "failed" and "machine" not in hit and (result.was_ended_by_error or not was_hit):
            found.append(f"{result.cell.name} failed: {result.reason}")
        elif was_hit:
            continue
        elif known and subject.known_hz is not None and not _holds(result, subject.known_hz):
            found.append(f"{result.cell.name}: {_interval(result)} does not hold {subject.known_hz:g}/s")
        elif not known and not overlap(result, undisturbed[result.cell]):
            other = _interval(undisturbed[result.cell])
            found.append(f"{result.cell.name}: {_interval(result)} does not overlap {other} of an undisturbed run")
    return found


def check_deaths(endings: Sequence[tuple[Cell, str]], hit: Collection[str]) -> list[str]:
    """Return the deaths that a trial says and nobody caused: those of other cells, or without any hit.

    Args:
        endings: Cell and end of each trial.
        hit: Roles whose processes were hit.
    """
    deaths = [(cell, ended) for cell, ended in endings if ended in DIED]
    return [
        f"{cell.name}: {ended}, but {'other processes were' if hit else 'nothing was'} hit"
        for cell, ended in deaths
        if cell.system == KNOWN_SYSTEM or not hit
    ]


def count_deliveries(attempt: int, trials: Sequence[JournalEntry]) -> list[DeliveryRecord]:
    """Return the messages of each system in the whole trials of a run that are drained.

    Args:
        attempt: Its number.
        trials: Of all cells of the run.
    """
    drained = [one for one in trials if one.measurement.drained and one.measurement.ended == "complete"]
    found = []
    for system in sorted({one.cell.system for one in drained}):
        own = [one.measurement for one in drained if one.cell.system == system]
        lost = sum(max(0, one.lost - one.failed) for one in own)  # what the source refused is lost, too
        duplicated = sum(one.duplicated for one in own)
        found.append(DeliveryRecord(attempt, system, len(own), sum(one.sent for one in own), lost, duplicated))
    return found


def check_deliveries(delivered: Sequence[DeliveryRecord], faults: Collection[Fault]) -> list[str]:
    """Return what is wrong with the counts of messages.

    Without a fault each message is processed once. No message that the source confirmed is lost, unless a process was
    stopped: the harness takes it for one that has nothing to do any more.

    Args:
        delivered: In the run.
        faults: That were done.
    """
    hit = any(fault.victim != "harness" for fault in faults)
    stopped = any(fault.kind == "stop" for fault in faults)
    found = []
    for one in delivered:
        known = one.system == KNOWN_SYSTEM
        if one.lost and (known or not stopped):
            found.append(f"{one.system}: {one.lost} confirmed messages were lost")
        if one.duplicated and (known or not hit):
            found.append(f"{one.system}: {one.duplicated} messages were processed twice, and nothing of it was hit")
    return found


def last_line(output: str) -> str:
    """Return the last line that is not empty."""
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")


def _holds(result: Result, rate: float) -> bool:
    low, high = result.low_hz, result.high_hz
    return (low is None or 0.9 * low <= rate) and (high is None or rate <= 1.1 * high)


def _interval(result: Result) -> str:
    return f"{result.low_hz} to {result.high_hz}/s ({result.status})"
