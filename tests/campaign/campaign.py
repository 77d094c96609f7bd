"""A campaign: attempts of a seed, one after the other, each in a folder that is kept only if something did not hold."""

import math
import shutil
import subprocess
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from bench.model.measurement import Result
from bench.storage.run_folder import read_results
from tests.campaign import disks
from tests.campaign.attack import AttackedRun
from tests.campaign.faults import Attempt, Fault, plan_attempts
from tests.campaign.histories import History
from tests.campaign.outcomes import AttemptRecord, FaultRecord, HistoryRecord, Log
from tests.campaign.subjects import SUBJECTS, Subject, installed

BY_NAME = {subject.name: subject for subject in SUBJECTS}


class Limits(Struct, frozen=True):
    """After which no attempt begins."""

    seconds: float
    attempts: float = math.inf
    faults: float = math.inf


class Campaign:
    """Attempts with their log.

    Args:
        out: Parent of the campaign's folder.
        seed: Decides which attempts there are.
        say: Prints a text: one line of progress, which begins with a return, and a line for each violation.
    """

    def __init__(self, out: Path, seed: int, say: Callable[[str], None]) -> None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        self.folder = (out / f"campaign-{seed}-{stamp}").absolute()
        self.log_file = self.folder / "log.jsonl"
        self._log, self._seed, self._say = Log(self.log_file), seed, say
        self._references: dict[str, list[Result]] = {}
        self._faults = self._acknowledged = self._violations = 0

    def run(self, subjects: Collection[str], limits: Limits) -> None:
        """Make attempts until a limit is reached.

        Args:
            subjects: Names of the runs that may be attacked; "history" for histories of HarmonicIO.
            limits: After which no attempt begins.
        """
        deadline, made = time.monotonic() + limits.seconds, 0
        runs = installed(subjects)
        for attempt in plan_attempts(self._seed, runs or SUBJECTS, is_root=disks.can_mount()):
            if attempt.subject not in subjects:
                continue
            if time.monotonic() >= deadline or made == limits.attempts or self._faults >= limits.faults:
                return
            self.make_attempt(attempt)
            made += 1

    def make_attempt(self, attempt: Attempt) -> AttemptRecord | HistoryRecord:
        """Make one attempt, and record it; its folder is deleted if everything held."""
        folder = self.folder / f"{attempt.number:05d}-{attempt.subject}"
        if attempt.subject == "history":
            record: AttemptRecord | HistoryRecord = History(folder, self._note(attempt)).run(
                attempt.number, attempt.faults
            )
        else:
            record = self._attack(attempt, folder)
        self._log.add(record)
        self._violations += len(record.violations)
        if isinstance(record, HistoryRecord):
            self._acknowledged += record.acknowledged
        for violation in record.violations:
            told = ", ".join(f"{fault.kind} {fault.victim}" for fault in attempt.faults)
            self._say(f"attempt {attempt.number}, {attempt.subject} ({told}): {violation}\n")
        self._say(
            f"\r{attempt.number:5d} {attempt.subject:<10} {record.seconds:4.0f} s  {self._faults:,} faults, "
            f"{self._acknowledged:,} messages acknowledged, {self._violations} violations "
        )
        if not record.violations:
            shutil.rmtree(folder, ignore_errors=True)
        return record

    def _attack(self, attempt: Attempt, folder: Path) -> AttemptRecord:
        subject, began = BY_NAME[attempt.subject], time.monotonic()
        reference = self._reference(subject)
        with AttackedRun(folder, subject, reference, self._note(attempt)) as run:
            try:
                found = run.attack(attempt.faults)
            except subprocess.TimeoutExpired as hang:
                found = [f"{' '.join(map(str, hang.cmd[2:4]))} did not end within {hang.timeout:g} s"]
        seconds = time.monotonic() - began
        return AttemptRecord(attempt.number, subject.name, seconds, run.code, run.last_line, tuple(found))

    def _reference(self, subject: Subject) -> list[Result]:
        """Return the results of an undisturbed run, which is made when the first attempt needs it."""
        if subject.name not in self._references:
            self._say(f"\r      {subject.name}: an undisturbed run first ")
            with AttackedRun(self.folder / f"reference-{subject.name}", subject, (), lambda *_: None) as run:
                run.start()
                found = run.end(None)
            assert run.run_folder is not None, f"the undisturbed run of {subject.name} failed: {found}"
            self._references[subject.name] = read_results(run.run_folder)
        return self._references[subject.name]

    def _note(self, attempt: Attempt) -> Callable[[Fault, str, float], None]:
        def note(fault: Fault, name: str, after_s: float) -> None:
            self._faults += 1
            ended = fault.kind == "kill" or (fault.kind == "stop" and not fault.resumes)
            self._log.add(FaultRecord(attempt.number, attempt.subject, fault.kind, fault.victim, name, after_s, ended))

        return note
