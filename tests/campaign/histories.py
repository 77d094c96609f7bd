"""Histories of HarmonicIO: numbered messages while connectors, PEs, workers, masters and the disk fail.

What was acknowledged must have been processed at least once, and nothing that was never sent: all are compared.
"""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.bench_command import Harness
from tests.campaign import clocks, disks, limits, network
from tests.campaign.faults import Fault
from tests.campaign.invariants import TRACEBACK, last_line
from tests.campaign.outcomes import HistoryRecord
from tests.campaign.sender import read_mark
from tests.campaign.victims import NUMBERS, Target, target_of
from tests.harmonicio.processes import LocalCluster

ROOT = Path(__file__).parents[2]
MESSAGES = 20_000
"""Sent while one fault happens."""
PES = 2
POLL_INTERVAL_S = 0.02
SEND_TIMEOUT_S, DELIVERY_TIMEOUT_S, END_TIMEOUT_S = 180.0, 60.0, 60.0
ENDED_OF_LIMIT = (2, 3)
"""Exit codes of a master or worker that says in a line what it could not have."""
DISK_BYTES = 64 * 2**20
Numbers = NDArray[np.uint64]
Note = Callable[[Fault, str, float], None]


class History:
    """One cluster with its faults, in a folder of its own.

    Args:
        folder: New.
        note: Told of each fault.
    """

    def __init__(self, folder: Path, note: Note) -> None:
        folder.mkdir(parents=True)
        self._folder, self._note, self._began = folder, note, time.monotonic()
        self._own = Harness(folder, ROOT)  # finds whatever carries its marker
        self._cluster = LocalCluster(folder)
        self._cluster.environment |= self._own.environment | {"PYTHONPATH": self._cluster.environment["PYTHONPATH"]}
        self._clock = folder / "clock"
        self._acknowledged: list[Numbers] = []
        self._sent = 0
        self._limited: set[str] = set()
        """roles of which a process was under a limit"""
        self._found: list[str] = []

    def run(self, number: int, faults: Sequence[Fault]) -> HistoryRecord:
        """Send messages under all faults, wait until they are processed, and return the counts."""
        try:
            if any(fault.victim == "clock" for fault in faults):
                self._cluster.environment |= clocks.environment(self._clock)
            with self._disk(faults):
                self._start()
                for fault in faults:
                    self._send_under(fault)
                self._wait_processed()
                self._stop()
        except (AssertionError, subprocess.TimeoutExpired) as problem:  # something did not come, or end, in time
            self._found.append(str(problem).splitlines()[0])
        finally:
            for process in self._own.running():
                process.kill()
        return self._record(number)

    @contextlib.contextmanager
    def _disk(self, faults: Sequence[Fault]) -> Iterator[None]:
        """Put the master's state on a disk of its own if that will become full."""
        if not any(fault.victim == "disk" for fault in faults):
            yield
            return
        with disks.mounted(self._folder / "state", DISK_BYTES):
            yield

    def _start(self) -> None:
        self._cluster.start_master()
        self._cluster.start_worker()
        self._cluster.submit(num=PES)
        self._cluster.wait_pes(PES)

    def _send_under(self, fault: Fault) -> None:
        """Send messages with a connector of its own; do the fault when their share of it has been sent."""
        first, self._sent = self._sent, self._sent + MESSAGES
        marks, log = self._folder / f"{first}.marks", self._folder / f"{first}.log"
        words = ["-m", "tests.campaign.sender", str(self._cluster.data_port), str(first), str(MESSAGES), str(marks)]
        with log.open("wb") as output:
            sender = subprocess.Popen(
                [sys.executable, *words], cwd=ROOT, env=self._own.environment, stdout=output, stderr=output
            )
        reached = first + int(fault.after_s * MESSAGES)
        while sender.poll() is None and read_mark(marks, first) < reached:
            self._replace_ended()
            time.sleep(POLL_INTERVAL_S)
        self._do(fault, sender)
        code = self._end_of(sender)
        if code != 0 and fault.victim != "connector":
            self._found.append(f"the connector ended with {code}: {last_line(log.read_text(errors='replace'))}")
        self._acknowledged.append(np.arange(first, read_mark(marks, first), dtype=np.uint64))

    def _end_of(self, sender: "subprocess.Popen[bytes]") -> int | None:
        deadline = time.monotonic() + SEND_TIMEOUT_S
        while (code := sender.poll()) is None and time.monotonic() < deadline:
            self._replace_ended()
            time.sleep(POLL_INTERVAL_S)
        if code is None:
            sender.kill()
            sender.wait()
        return code

    # faults

    def _do(self, fault: Fault, sender: "subprocess.Popen[bytes]") -> None:
        if fault.victim == "disk":
            self._tell(fault, "state")
            disks.fill(self._folder / "state")
            time.sleep(fault.held_s)
            disks.empty(self._folder / "state")
            return
        if fault.victim == "network":
            if network.is_own():
                self._tell(fault, "data port")
                with network.broken(fault.kind, self._cluster.data_port):
                    time.sleep(fault.held_s)
            return
        if fault.victim == "clock":
            seconds = clocks.STEPS_S[int(fault.chance * len(clocks.STEPS_S))]
            self._tell(fault, f"by {seconds} s")
            clocks.step(self._clock, seconds)
            time.sleep(fault.held_s)
            return
        target = self._target(fault, sender)
        if target is not None:
            self._hit(fault, target)

    def _hit(self, fault: Fault, target: Target) -> None:
        """Do a fault to a process, and start another one in its place if it was the master or a worker."""
        if fault.kind not in NUMBERS:
            if not target.listening_ports():
                return  # it still loads its libraries, and ends in Python's own words if there is no memory for one
            self._tell(fault, f"{target.name} {target.pid}")
            self._limited |= {str(fault.victim)} & self._cluster.processes.keys()
            with limits.limited(target, fault.kind, fault.chance):
                time.sleep(fault.held_s)
        elif not target.send(NUMBERS[fault.kind]):
            return
        else:
            self._tell(fault, f"{target.name} {target.pid}")
        if fault.kind == "stop":
            time.sleep(fault.held_s)
            target.send(signal.SIGCONT if fault.resumes else signal.SIGKILL)
        ends = fault.kind in ("kill", "terminate") or (fault.kind == "stop" and not fault.resumes)
        if fault.victim in self._cluster.processes and ends:
            self._replace(str(fault.victim))

    def _target(self, fault: Fault, sender: "subprocess.Popen[bytes]") -> Target | None:
        if fault.victim == "connector":
            return target_of("connector", sender.pid) if sender.poll() is None else None
        if fault.victim == "PE":
            pids = sorted(self._cluster.pe_pids())
            return target_of("PE", pids[int(fault.chance * len(pids)) % len(pids)]) if pids else None
        return target_of(str(fault.victim), self._cluster.processes[fault.victim].pid)

    def _replace(self, role: str) -> None:
        """Wait for the end of a master or worker, and start another one at its ports."""
        self._limited.discard(role)
        self._cluster.processes.pop(role).wait(END_TIMEOUT_S)
        if role == "master":
            self._cluster.start_master()
        else:
            self._cluster.start_worker()

    def _replace_ended(self) -> None:
        """Start another master or worker for one that has ended of a limit, as a supervisor does."""
        for role in sorted(self._limited & self._cluster.processes.keys()):
            code = self._cluster.processes[role].poll()
            if code is not None:
                if code not in ENDED_OF_LIMIT:
                    self._found.append(f"the {role} ended with {code} after it was under a limit")
                self._replace(role)

    def _tell(self, fault: Fault, name: str) -> None:
        self._note(fault, name, time.monotonic() - self._began)

    # checks

    def _wait_processed(self) -> None:
        """Wait until everything acknowledged is processed, or nothing more comes for DELIVERY_TIMEOUT_S."""
        acknowledged = self._all_acknowledged()
        seen, deadline = -1, time.monotonic() + DELIVERY_TIMEOUT_S
        while time.monotonic() < deadline:
            self._replace_ended()
            processed = self._cluster.processed()
            if np.isin(acknowledged, processed).all():
                return
            if len(processed) != seen:
                seen, deadline = len(processed), time.monotonic() + DELIVERY_TIMEOUT_S
            time.sleep(10 * POLL_INTERVAL_S)

    def _stop(self) -> None:
        for role in ("worker", "master"):
            code = self._cluster.stop(role)
            if code not in (0, -signal.SIGTERM):  # the second: it had only just been started
                self._found.append(f"the {role} ended with {code} after SIGTERM")
        if TRACEBACK in self._cluster.log():
            self._found.append("a traceback is in the cluster's log")

    def _all_acknowledged(self) -> Numbers:
        return np.concatenate([np.zeros(0, dtype=np.uint64), *self._acknowledged])

    def _record(self, number: int) -> HistoryRecord:
        acknowledged, processed = self._all_acknowledged(), self._cluster.processed()
        different = np.unique(processed)
        lost = np.setdiff1d(acknowledged, different)
        found = list(self._found)
        if len(lost):
            found.append(f"{len(lost)} acknowledged messages are lost, the first is number {lost[0]}")
        if len(different) and different[-1] >= self._sent:
            found.append(f"number {different[-1]} was processed and never sent")
        return HistoryRecord(
            number, time.monotonic() - self._began, self._sent, len(acknowledged), len(different),
            len(processed) - len(different), len(lost), tuple(found),
        )  # fmt: skip
