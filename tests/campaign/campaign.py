"""Attempts of a seed, one after the other, each in a folder that is kept only if something did not hold.

The next call goes on where the log ends.
"""

import shutil
import subprocess
import time
import traceback
from collections.abc import Callable, Collection
from pathlib import Path

from msgspec import Struct

from bench.model.measurement import Result
from bench.storage.journal import read_journal
from bench.storage.run_folder import read_results
from tests.campaign import clocks, disks
from tests.campaign.attack import AttackedRun
from tests.campaign.circumstances import attack_by_circumstance
from tests.campaign.faults import SIGNALS, Attempt, Fault, plan_attempts
from tests.campaign.histories import History
from tests.campaign.invariants import check_deliveries, count_deliveries
from tests.campaign.outcomes import AttemptRecord, FaultRecord, HistoryRecord, Log
from tests.campaign.subjects import SUBJECTS, Subject, installed

UNLIMITED = 10**9
BY_NAME = {subject.name: subject for subject in SUBJECTS}


class Limits(Struct, frozen=True):
    """After which no attempt begins; those of earlier calls count."""

    seconds: float
    attempts: int = UNLIMITED
    faults: int = UNLIMITED


class Campaign:
    """Attempts with their log.

    Args:
        folder: For their folders; may have those of earlier calls.
        log: Remembers the attempts.
        seed: Decides which attempts there are.
        say: Prints a line about an attempt, or one of its violations.
    """

    def __init__(self, folder: Path, log: Log, seed: int, say: Callable[[str], None]) -> None:
        self._folder, self._log, self._seed, self._say = folder.absolute(), log, seed, say
        self._references: dict[str, list[Result]] = {}
        before = log.records()
        ended = [one for one in before if isinstance(one, AttemptRecord | HistoryRecord)]
        self._made = {one.attempt for one in ended}
        self._seconds = sum(one.seconds for one in ended)
        self._faults = sum(isinstance(one, FaultRecord) for one in before)

    def run(self, subjects: Collection[str], limits: Limits) -> None:
        """Make attempts until a limit is reached.

        Args:
            subjects: Names of the runs that may be attacked; "history" for histories of HarmonicIO.
            limits: After which no attempt begins.
        """
        began, runs = time.monotonic() - self._seconds, installed(subjects)
        own_clock = clocks.can_step()
        for attempt in plan_attempts(self._seed, runs or SUBJECTS, is_root=disks.can_mount(), own_clock=own_clock):
            if attempt.subject not in subjects or attempt.number in self._made:
                continue
            late = time.monotonic() - began >= limits.seconds
            if late or len(self._made) >= limits.attempts or self._faults >= limits.faults:
                return
            self.make_attempt(attempt)

    def make_attempt(self, attempt: Attempt) -> AttemptRecord | HistoryRecord:
        """Make one attempt, and record it; its folder is deleted if everything held."""
        folder, began = self._folder / f"{attempt.number:05d}-{attempt.subject}", time.monotonic()
        shutil.rmtree(folder, ignore_errors=True)  # of a call that was ended meanwhile
        try:
            record = self._make(attempt, folder)
        except Exception as bug:  # noqa: BLE001  of the campaign; the attempts behind it are made all the same
            traceback.print_exc()
            found = (f"the campaign failed: {type(bug).__name__}: {bug}",)
            record = AttemptRecord(attempt.number, attempt.subject, time.monotonic() - began, None, "", found)
        self._log.add(record)
        self._made.add(attempt.number)
        self._say(f"attempt {attempt.number}, {attempt.subject}: {record.seconds:.0f} s")
        for violation in record.violations:
            told = ", ".join(f"{fault.kind} {fault.victim}" for fault in attempt.faults)
            self._say(f"attempt {attempt.number}, {attempt.subject} ({told}): {violation}")
        if not record.violations:
            shutil.rmtree(folder, ignore_errors=True)
        return record

    def _make(self, attempt: Attempt, folder: Path) -> AttemptRecord | HistoryRecord:
        if attempt.subject == "history":
            return History(folder, self._note(attempt)).run(attempt.number, attempt.faults)
        subject, began = BY_NAME[attempt.subject], time.monotonic()
        found = self._run_undisturbed(subject)
        if found:
            code, last_line = None, ""
        else:
            with AttackedRun(folder, subject, self._references[subject.name], self._note(attempt)) as run:
                try:
                    if attempt.faults[0].kind in SIGNALS:
                        found = run.attack(attempt.faults) + self._check_deliveries(attempt.number, run)
                    else:
                        found = attack_by_circumstance(run, attempt.faults[0])
                except subprocess.TimeoutExpired as hang:
                    found = [f"{' '.join(map(str, hang.cmd[2:4]))} did not end within {hang.timeout:g} s"]
            code, last_line = run.code, run.last_line
        return AttemptRecord(attempt.number, subject.name, time.monotonic() - began, code, last_line, tuple(found))

    def _check_deliveries(self, attempt: int, run: AttackedRun) -> list[str]:
        """Record what arrived in the trials of a run that has ended, and return what is wrong with it."""
        there = run.run_folder
        if there is None:
            return []
        delivered = count_deliveries(attempt, [line.entry for line in read_journal(there)])
        for record in delivered:
            self._log.add(record)
        return check_deliveries(delivered, run.done)

    def _run_undisturbed(self, subject: Subject) -> list[str]:
        """Run a scenario once without any fault, for its results; return what did not hold."""
        if subject.name in self._references:
            return []
        folder = self._folder / f"reference-{subject.name}"
        if not folder.exists():
            self._say(f"{subject.name}: an undisturbed run first")
            unfinished = folder.with_name(f"{folder.name}-unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            with AttackedRun(unfinished, subject, (), lambda *_: None) as run:
                run.start()
                found = run.end(None)
            if found:
                return [f"the undisturbed run: {text}" for text in found]
            unfinished.rename(folder)
        self._references[subject.name] = read_results(next((folder / "results").iterdir()))
        return []

    def _note(self, attempt: Attempt) -> Callable[[Fault, str, float], None]:
        def note(fault: Fault, name: str, after_s: float) -> None:
            self._faults += 1
            ended = fault.kind == "kill" or (fault.kind == "stop" and not fault.resumes)
            self._log.add(FaultRecord(attempt.number, attempt.subject, fault.kind, fault.victim, name, after_s, ended))

        return note
