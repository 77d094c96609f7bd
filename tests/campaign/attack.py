"""One run under attack: started, hit, cleaned up after, and resumed until it has ended; each step is checked."""

import contextlib
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
from tests.campaign import clocks, damage, disks, invariants
from tests.campaign.faults import Fault
from tests.campaign.subjects import SITE, Subject
from tests.campaign.victims import NUMBERS, Target, find_target, target_of

ROOT = Path(__file__).parents[2]
POLL_INTERVAL_S = 0.02
LEFT_TIMEOUT_S = 60.0
"""For the last processes of a run to be gone after `bench clean`."""
SLOWER, AT_LEAST_S = 4, 120
"""A run under attack ends within so many times its usual time, and this."""
LARGE_DISK = "size=4g"
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
    def _timeout_s(self) -> float:
        return SLOWER * self.subject.seconds + AT_LEAST_S

    @property
    def run_folder(self) -> Path | None:
        """The run's folder, once it has a run.json."""
        return next((path.parent for path in sorted(self.results.glob("*/run.json"))), None)

    def attack(self, faults: Sequence[Fault]) -> list[str]:
        """Do all faults, let the run end, and return the violations."""
        first = faults[0]
        if first.kind not in NUMBERS:  # a circumstance comes alone
            if first.kind not in ("read only", "torn line", "edited file"):  # these concern no process of a cell
                self._hit.add(first.victim)
            return self._attack_circumstances(first)
        found: list[str] = []
        for fault in faults:
            self.start()
            if not self._send(fault):
                break  # it has ended by itself, before the moment of the fault
            if fault.victim != "harness":
                self._hit.add(fault.victim)
            if fault.ends_harness:
                found += self.end(fault)
        return found + self.finish()

    def start(self, changes: Mapping[str, str] | None = None, limits: Mapping[int, int] | None = None) -> None:
        """Start or resume the run, unless it is running.

        Args:
            changes: To the environment.
            limits: Of the process, by the number of the resource.
        """
        if self._process is not None:
            return
        there = self.run_folder
        where = ["--resume", str(there)] if there is not None else ["--out", str(self.results)]
        usual = self._harness.environment
        self._harness.environment = {**usual, **(changes or {})}
        words = ["run", str(self.folder / "scenario.yaml"), "--site", str(self.folder / "site.yaml"), *where]
        self._process, self._began = self._harness.started(*words), time.monotonic()
        self._harness.environment = usual
        for number, limit in (limits or {}).items():
            resource.prlimit(self._process.pid, number, (limit, limit))

    def end(self, fault: Fault | None) -> list[str]:
        """Wait until bench has ended; return what is wrong with that, and with what it left after `bench clean`."""
        assert self._process is not None, "nothing was started"
        process, self._process = self._process, None
        try:
            output, _ = process.communicate(timeout=self._timeout_s)
            self.code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            output, self.code = process.communicate()[0], None
        self.last_line = invariants.last_line(output)
        with (self.folder / "output").open("a", encoding="utf-8") as file:
            file.write(f"--- {fault}: {self.code}\n{output}")
        found = invariants.check_ending(fault, self.code, output, begun=self.run_folder is not None)
        return found + self._check_journals() + self._clean() + self._verify(finished=False)

    def finish(self) -> list[str]:
        """Let the run go on until it has ended, and return what is wrong with its results."""
        self.start()
        found = self.end(None)
        there = self.run_folder
        if there is None or self.code not in invariants.FINISHED:
            return found or ["the run could not be ended"]
        found += self._verify(finished=True)
        cells = len(read_run(there).scenario.cells())
        found += invariants.check_results(self.subject, read_results(there), self._reference, self._hit, cells)
        endings = [(line.entry.cell, line.entry.measurement.ended) for line in read_journal(there)]
        return found + invariants.check_deaths(endings, self._hit)

    # faults

    def _send(self, fault: Fault) -> bool:
        """Send the fault's signal at its moment; return False if bench ends before it."""
        assert self._process is not None, "nothing was started"
        bench = target_of("bench", self._process.pid)
        while bench is not None and self._process.poll() is None:
            if time.monotonic() > self._began + fault.after_s:
                own = fault.victim == "harness"
                target = bench if own else find_target(self._children, fault.victim, fault.chance)
                if target is not None and target.send(NUMBERS[fault.kind]):
                    self._note(fault, f"{target.name} {target.pid}", time.monotonic() - self._began)
                    self._hold(fault, target)
                    return True
            time.sleep(POLL_INTERVAL_S)
        return False

    def _hold(self, fault: Fault, target: Target) -> None:
        if fault.kind == "stop":
            time.sleep(fault.held_s)
            target.send(signal.SIGCONT if fault.resumes else signal.SIGKILL)

    def _attack_circumstances(self, fault: Fault) -> list[str]:
        """Run under a circumstance until bench ends, put it right, and let the run go on until it has ended."""
        match fault.kind:
            case "disk full":
                size = int(2 ** (16 + 8 * fault.chance))
                with disks.mounted(self.results, size):
                    self._note(fault, f"{size} bytes", 0.0)
                    return self._run_until_end(fault) + self._with_disk(LARGE_DISK, self.finish)
            case "read only":
                with disks.mounted(self.results, 2**32):
                    found = self._run_until_killed(fault)
                    self._note(fault, "resumed on a read-only disk", 0.0)
                    found += self._with_disk("ro", lambda: self._run_until_end(fault))
                    return found + self._with_disk("rw", self.finish)
            case "data full":
                return self._run_with_full_data(fault) + self.finish()
            case "clock stepped":
                return self._run_with_step(fault) + self.finish()
            case "torn line" | "edited file":
                return self._run_until_killed(fault) + self._damage(fault) + self.finish()
            case "few descriptors":
                limits = {resource.RLIMIT_NOFILE: 24 + int(200 * fault.chance)}
            case "little memory":
                limits = {resource.RLIMIT_AS: int((300 + 1500 * fault.chance) * 2**20)}
            case _:
                return self._run_until_end(fault, self._other_java(fault.kind)) + self.finish()
        self._note(fault, f"limit {next(iter(limits.values()))}", 0.0)
        return self._run_until_end(fault, limits=limits) + self.finish()

    def _run_until_end(
        self, fault: Fault, changes: Mapping[str, str] | None = None, limits: Mapping[int, int] | None = None
    ) -> list[str]:
        self.start(changes, limits)
        return self.end(fault)

    def _run_with_full_data(self, fault: Fault) -> list[str]:
        """Run with the data of embedded services, such as a broker's log, on a small disk of its own."""
        self.start()
        assert self._process is not None, "it was started"
        deadline = self._began + self._timeout_s
        while self.run_folder is None and self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL_S)
        if self.run_folder is not None:
            size = int(2 ** (20 + 6 * fault.chance))
            with disks.mounted(self.run_folder / "data", size):
                self._note(fault, f"{size} bytes", time.monotonic() - self._began)
                with contextlib.suppress(subprocess.TimeoutExpired):  # `end` kills it
                    self._process.wait(self._timeout_s)
        return self.end(fault)

    def _run_with_step(self, fault: Fault) -> list[str]:
        """Run with a wall clock that steps at the moment of the fault, for bench and all that it starts."""
        clock, seconds = self.folder / "clock", clocks.STEPS_S[int(fault.chance * len(clocks.STEPS_S))]
        self.start(clocks.environment(clock))
        assert self._process is not None, "it was started"
        try:
            self._process.wait(fault.after_s)
        except subprocess.TimeoutExpired:
            clocks.step(clock, seconds)
            self._note(fault, f"by {seconds} s", time.monotonic() - self._began)
        return self.end(fault)

    def _run_until_killed(self, fault: Fault) -> list[str]:
        """Run until the moment of the fault, and kill the harness."""
        self.start()
        kill = Fault("kill", "harness", fault.after_s, fault.chance)
        self._send(kill)
        return self.end(kill)

    def _with_disk(self, options: str, act: Callable[[], list[str]]) -> list[str]:
        changed = disks.remount(self.results, options)
        return act() if changed else [f"the disk could not be mounted with {options}: a file is still open"]

    def _damage(self, fault: Fault) -> list[str]:
        """Damage a file of the run folder; return what `bench` says wrongly of it. A changed byte is put back."""
        there = self.run_folder
        if there is None:
            return []
        if fault.kind == "torn line":
            name = damage.tear_line(there, fault.chance)
            self._note(fault, name or "no line yet", 0.0)
            code, output = self._harness.done("report", str(there), "--format", "csv")
            read = [] if code in (0, *invariants.REFUSED) else [f"report: {invariants.last_line(output)}"]
            return read + self._verify(finished=False)
        edited = damage.edit_byte(there, fault.chance)
        if edited is None:
            return []
        name, content = edited
        self._note(fault, name, 0.0)
        code, output = self._harness.done("verify", str(there))
        (there / name).write_bytes(content)
        named = any(name in line for line in output.splitlines() if line.startswith("differs"))
        return [] if code == 4 and named else [f"verify did not name {name}: {code}, {invariants.last_line(output)}"]

    def _other_java(self, kind: str) -> dict[str, str]:
        """Return the environment of a machine without Java, or with one that is too old."""
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        if kind == "old Java":
            java = folder / "java"
            java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.27\" 2025-04-15' >&2\n", encoding="utf-8")
            java.chmod(0o755)
        self._note(Fault("old Java" if kind == "old Java" else "no Java", "machine", 0.0, 0.0), str(folder), 0.0)
        return {"PATH": f"{folder}:/nowhere", "JAVA_HOME": ""}

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

    def _verify(self, *, finished: bool) -> list[str]:
        there = self.run_folder
        if there is None:
            return []
        code, output = self._harness.done("verify", str(there))
        return invariants.check_verification(code, output, finished=finished)
