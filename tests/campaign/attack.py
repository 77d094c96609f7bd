"""One run under attack: started, hit, cleaned up after, and resumed until it has ended; each step is checked."""

import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.model.measurement import Result
from bench.storage.journal import read_journal
from bench.storage.run_folder import read_results, read_run
from tests.bench_command import Harness
from tests.campaign import damage, invariants
from tests.campaign.faults import Fault
from tests.campaign.subjects import SITE, Subject
from tests.campaign.victims import NUMBERS, Target, find_target, target_of
from tests.cgroups import join

ROOT = Path(__file__).parents[2]
POLL_INTERVAL_S = 0.02
LEFT_TIMEOUT_S = 60.0
"""For the last processes of a run to be gone after `bench clean`."""
SLOWER, AT_LEAST_S = 6, 240
"""A run under attack ends within so many times its usual time, and this."""
Note = Callable[[Fault, str, float], None]
"""Called with a fault that was done, what it hit, and the seconds since bench was started."""


class AttackedRun:
    """A run in a folder of its own, whose processes can be told from everybody else's.

    Args:
        folder: Of this attempt; new.
        subject: The scenario.
        reference: Results of an undisturbed run of it.
        note: Told of each fault.
    """

    def __init__(self, folder: Path, subject: Subject, reference: Sequence[Result], note: Note) -> None:
        self.folder, self.subject, self._reference, self._note = folder, subject, reference, note
        self.results, self._temporary = folder / "results", folder / "tmp"
        self._temporary.mkdir(parents=True)
        (folder / "scenario.yaml").write_text(subject.scenario, encoding="utf-8")
        (folder / "site.yaml").write_text(SITE, encoding="utf-8")
        self._harness = Harness(folder, ROOT)
        self._harness.environment["TMPDIR"] = str(self._temporary)
        self._process: subprocess.Popen[str] | None = None
        self._began = 0.0
        self._journals: dict[str, bytes] = {}
        self._hit: set[str] = set()
        self._was_hit = False
        """since bench was started last"""
        self.done: list[Fault] = []
        """by signals"""
        self.code: int | None = None
        self.last_line = ""

    def __enter__(self) -> "AttackedRun":
        return self

    def __exit__(self, *_: object) -> None:
        """End whatever still runs."""
        for process in self._harness.running():
            process.kill()
        if self._process is not None:
            self._process.communicate()

    @property
    def timeout_s(self) -> float:
        """After which bench is taken to hang."""
        return SLOWER * self.subject.seconds + AT_LEAST_S

    @property
    def run_folder(self) -> Path | None:
        """The run's folder, once it has a run.json."""
        return next((path.parent for path in sorted(self.results.glob("*/run.json"))), None)

    def attack(self, faults: Sequence[Fault]) -> list[str]:
        """Send all signals, let the run end, and return the violations."""
        found: list[str] = []
        for fault in faults:
            self.start()
            if not self.send(fault):
                break  # it has ended by itself, before the moment of the fault
            self.done.append(fault)
            if fault.victim != "harness":
                self.add_hit(fault.victim)
            if fault.ends_harness:
                found += self.end(fault)
        return found + self.finish()

    def start(
        self,
        changes: Mapping[str, str] | None = None,
        limits: Mapping[int, int] | None = None,
        cgroup: Path | None = None,
    ) -> None:
        """Start or resume the run, unless it is running.

        Args:
            changes: To the environment.
            limits: Of the process, by the number of the resource.
            cgroup: That it joins.
        """
        if self._process is not None:
            return
        there = self.run_folder
        where = ["--resume", str(there)] if there is not None else ["--out", str(self.results)]
        usual = self._harness.environment
        self._harness.environment = {**usual, **(changes or {})}
        words = ["run", str(self.folder / "scenario.yaml"), "--site", str(self.folder / "site.yaml"), *where]
        self._process, self._began, self._was_hit = self._harness.started(*words), time.monotonic(), False
        self._harness.environment = usual
        if cgroup is not None:
            join(cgroup, self._process.pid)
        for number, limit in (limits or {}).items():
            resource.prlimit(self._process.pid, number, (limit, limit))

    def end(self, fault: Fault | None) -> list[str]:
        """Wait until bench has ended; return what is wrong with that, and with what it left after `bench clean`."""
        assert self._process is not None, "nothing was started"
        process, self._process = self._process, None
        try:
            output, _ = process.communicate(timeout=self.timeout_s)
            self.code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            output, self.code = process.communicate()[0], None
        self.last_line = invariants.last_line(output)
        with (self.folder / "output").open("a", encoding="utf-8") as file:
            file.write(f"--- {fault}: {self.code}\n{output}")
        found = invariants.check_ending(fault, self.code, output, begun=self.run_folder is not None)
        return found + self._check_journals() + self._clean() + self.verify(finished=False)

    def finish(self) -> list[str]:
        """Let the run go on until it has ended, and return what is wrong with its results.

        A bench whose processes were hit may end cells with an error; one more, of which nothing is hit, must not.
        """
        found = self.end(None) if self._process is not None and self._was_hit else []
        self.start()
        found += self.end(None)
        there = self.run_folder
        if there is None or self.code not in invariants.FINISHED:
            return found or ["the run could not be ended"]
        found += self.verify(finished=True)
        cells = len(read_run(there).scenario.cells())
        found += invariants.check_results(self.subject, read_results(there), self._reference, self._hit, cells)
        endings = [(line.entry.cell, line.entry.measurement.ended) for line in read_journal(there)]
        return found + invariants.check_deaths(endings, self._hit)

    def add_hit(self, victim: str) -> None:
        """Remember a role whose processes were hit: its cells may have any answer."""
        self._hit.add(victim)
        self._was_hit = self._process is not None

    def note(self, fault: Fault, name: str) -> None:
        """Record a fault that was done."""
        self._note(fault, name, time.monotonic() - self._began if self._process is not None else 0.0)

    def wait(self, seconds: float) -> bool:
        """Return whether bench ends within so many seconds."""
        assert self._process is not None, "nothing was started"
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def bench(self, *words: str) -> tuple[int, str]:
        """Run another verb of bench; return its exit code and its output."""
        code, output = self._harness.done(*words)
        return code, output

    def send(self, fault: Fault) -> bool:
        """Send the fault's signal at its moment; return False if bench ends before it."""
        while (target := self.wait_target(fault)) is not None:
            if target.send(NUMBERS[fault.kind]):
                self.note(fault, f"{target.name} {target.pid}")
                self._hold(fault, target)
                return True
            time.sleep(POLL_INTERVAL_S)
        return False

    def wait_target(self, fault: Fault) -> Target | None:
        """Return the process that a fault hits, at its moment; None if bench ends before it."""
        assert self._process is not None, "nothing was started"
        bench = target_of("bench", self._process.pid)
        while bench is not None and self._process.poll() is None:
            if time.monotonic() > self._began + fault.after_s:
                own = fault.victim == "harness"
                target = bench if own else find_target(self._children, fault.victim, fault.chance)
                if target is not None:
                    return target
            time.sleep(POLL_INTERVAL_S)
        return None

    def _hold(self, fault: Fault, target: Target) -> None:
        if fault.kind == "stop":
            time.sleep(fault.held_s)
            target.send(signal.SIGCONT if fault.resumes else signal.SIGKILL)

    # checks

    @property
    def _children(self) -> Path:
        return self.folder / "state" / "stream-bench" / "children"

    def _check_journals(self) -> list[str]:
        """Return the journals that are not what they were, with more behind it."""
        found, there = [], self.run_folder
        for name in damage.JOURNALS if there is not None else ():
            path = there / name
            now = path.read_bytes() if path.exists() else b""
            found += invariants.check_journal(self._journals.get(name, b""), now, name)
            self._journals[name] = now
        return found

    def _clean(self) -> list[str]:
        """Run `bench clean`; return what is left of processes and folders, and end it."""
        code, output = self._harness.done("clean", "--out", str(self.results))
        found = [] if code == 0 else [f"clean ended with {code}: {invariants.last_line(output)}"]
        deadline = time.monotonic() + LEFT_TIMEOUT_S
        while (left := self._harness.running()) and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL_S)
        for process in left:
            found.append(f"process {process.pid} is left: {process.name()}")
            process.kill()
        found += [f"{path.parent.name}/data is left" for path in self.results.glob("*/data")]
        return found + [f"{path.name} is left in the folder for temporary files" for path in self._temporary.iterdir()]

    def verify(self, *, finished: bool) -> list[str]:
        """Return what `bench verify` finds that it must not."""
        there = self.run_folder
        if there is None:
            return []
        code, output = self._harness.done("verify", str(there))
        return invariants.check_verification(code, output, finished=finished)
