"""A soak test: what runs for an hour keeps its memory, its file descriptors and what it has on disk.

A cluster of HarmonicIO has a steady stream of messages, and a run of bench tries rates at one broker all the time.
"""

import contextlib
import itertools
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import psutil

from bench.system.orphans import records
from tests.bench_command import Harness
from tests.campaign.outcomes import SoakRecord
from tests.campaign.sender import read_mark
from tests.campaign.subjects import SITE
from tests.campaign.victims import label_of, words_of
from tests.harmonicio.processes import LocalCluster

ROOT = Path(__file__).parents[2]
SAMPLE_INTERVAL_S = 5.0
MIN_SHARE, MIN_SAMPLES = 0.2, 24
"""Of the time that is asked for, and of samples: a process that was there for less is not judged."""
JUDGED = ("harness", "locust", "kafka", "spark driver (JVM)", "master", "worker", "PE", "connector")
"""Roles with a process that is there for long, unless something went wrong; the others are started for each trial."""
MORE_SHARE, MORE_BYTES, MORE_DESCRIPTORS = 0.1, 16 * 2**20, 4
"""By which the last quarter of a series may exceed its second quarter."""
JVM_BYTES = 512 * 2**20
"""Of a JVM beyond its heap, which it may fill at any time."""
END_TIMEOUT_S = 120.0
PREFERRED = "-10"
"""The nice value of its sessions: without rates that are sustained beside a campaign there is no run that lasts."""
PES = 2
SHARE_OF_CELL = 0.45
"""Of the time, for each of the two cells of the run. All processes work in both, on messages of one size: what an idle
JVM has open says nothing of one that reads, and Locust's buffers grow with the messages (150 MiB for 1 kB, 190 MiB for
2 kB). A cell without a rate has no latency trials; so the first rate leaves Spark nine tenths of its interval, there
are lower ones, and the site says that other work invalidates no trial."""
TRIALS, BESIDES_S = 20, 3.0
"""Latency trials of a cell, and the seconds of each besides its window."""
SCENARIO = """\
name: soak
title: A broker, Locust and a Spark driver that run for long
systems: [spark/kafka]
grid: {{message_size: [1 kB], cpu_cost: [10 ms, 11 ms]}}
search: {{strategy: bisection, start: 5 /s, highest: 5 /s, lowest: 1 /s, budget: 150 s}}
timing: {{settle: 200 ms, window: 2 s, drain: 20 s, warm_up: 0 s}}
latency: {{at: [{shares}], window: {window:.0f} s}}
settings:
  spark: {{cores: 1, batch_interval: 3 s}}
"""


class ResourceSample(NamedTuple):
    """The memory and open files of a process, or the size of a folder, at one moment."""

    at_s: float
    bytes: int
    descriptors: int = 0


def judge(role: str, series: Sequence[ResourceSample], planned_s: float, heap_bytes: int | None = None) -> SoakRecord:
    """Return what one process or folder had in its second and in its last quarter, and what of that is not flat.

    Args:
        role: Its name.
        series: Samples in the order of time; at least one.
        planned_s: How long it might have been there.
        heap_bytes: The largest heap of a JVM; None for what has none.
    """
    seconds, quarter = series[-1].at_s - series[0].at_s, max(len(series) // 4, 1)
    before, after = series[quarter : 2 * quarter] or series, series[-quarter:]
    bytes_before, bytes_after = (int(median(one.bytes for one in part)) for part in (before, after))
    had, has = (int(median(one.descriptors for one in part)) for part in (before, after))
    found = []
    if len(series) >= MIN_SAMPLES and seconds >= MIN_SHARE * planned_s:
        allowed = bytes_before * (1 + MORE_SHARE) + MORE_BYTES
        if bytes_after > max(allowed, heap_bytes + JVM_BYTES if heap_bytes else 0):
            found.append(f"{role} grew from {bytes_before / 2**20:.0f} to {bytes_after / 2**20:.0f} MiB")
        if has > had + MORE_DESCRIPTORS:
            found.append(f"{role} had {had} open files, and then {has}")
    return SoakRecord(role, seconds, bytes_before, bytes_after, had, has, tuple(found))


def check_roles(found: Sequence[SoakRecord], planned_s: float) -> list[str]:
    """Return the roles of which no process was there for long enough to be judged."""
    lasted = {one.role for one in found if one.seconds >= MIN_SHARE * planned_s}
    return [f"no {role} was there for long" for role in JUDGED if role not in lasted]


def scenario_text(seconds: float) -> str:
    """Return the scenario of a run that lasts for about 0.9 of so many seconds."""
    window = max(1.0, SHARE_OF_CELL * seconds / TRIALS - BESIDES_S)
    return SCENARIO.format(shares=", ".join(["100 %"] * TRIALS), window=window)


class Soak:
    """A cluster and a run, watched for a given time.

    Args:
        folder: New.
        seconds: How long.
        enough: Told the roles that were seen so far; ends the time if it returns True.
    """

    def __init__(self, folder: Path, seconds: float, enough: Callable[[set[str]], bool] = lambda _: False) -> None:
        (folder / "cluster").mkdir(parents=True)
        self._folder, self._seconds, self._enough = folder, seconds, enough
        self._began = time.monotonic()
        self._found: list[str] = []
        self._own = Harness(folder, ROOT)  # finds whatever carries its marker
        self._cluster = LocalCluster(folder / "cluster")
        self._cluster.environment |= self._own.environment | {"PYTHONPATH": self._cluster.environment["PYTHONPATH"]}
        self._series: dict[tuple[str, int], list[ResourceSample]] = {}
        self._heaps: dict[int, int | None] = {}
        self._marks = folder / "marks"
        self._sender: subprocess.Popen[bytes] | None = None
        self._bench: subprocess.Popen[bytes] | None = None

    def watch(self) -> None:
        """Start both, and take samples until the time is over; an interrupt may end it."""
        with self._recorded():
            self._start()
            for number in itertools.count():
                moment = number * SAMPLE_INTERVAL_S
                if moment >= self._seconds or self._enough({role for role, _ in self._series}):
                    return
                time.sleep(max(self._began + moment - time.monotonic(), 0))
                self._sample(time.monotonic() - self._began)

    def end(self) -> list[SoakRecord]:
        """End both, and return what each process had, and what did not hold."""
        seconds = time.monotonic() - self._began
        with self._recorded():
            self._found += self._end()
        for process in self.running():
            process.kill()
        judged = [
            judge(role, series, self._seconds, self._heaps.get(pid)) for (role, pid), series in self._series.items()
        ]
        if seconds >= 0.9 * self._seconds:
            self._found += check_roles(judged, self._seconds)
        return [*judged, SoakRecord("all", seconds, 0, 0, 0, 0, tuple(self._found))]

    @contextlib.contextmanager
    def _recorded(self) -> Iterator[None]:
        """Make a violation of an exception, as of that of an attempt."""
        try:
            yield
        except Exception as problem:  # noqa: BLE001  whatever it is
            traceback.print_exc()
            self._found.append(f"the soak test failed: {type(problem).__name__}: {problem}")

    def running(self) -> list[psutil.Process]:
        """Return all processes of both that are there."""
        return list(self._own.running())

    def _start(self) -> None:
        self._cluster.start_master()
        self._cluster.start_worker()
        self._cluster.submit(num=PES)
        self._cluster.wait_pes(PES)
        words = ["-m", "tests.campaign.sender", str(self._cluster.data_port), "0", "steady", str(self._marks)]
        self._sender = self._start_process("sender", words)
        (self._folder / "scenario.yaml").write_text(scenario_text(self._seconds))
        (self._folder / "site.yaml").write_text(f"{SITE}shared_machine: true\n")
        scenario, site, out = (str(self._folder / name) for name in ("scenario.yaml", "site.yaml", "results"))
        self._bench = self._start_process("bench", ["-m", "bench", "run", scenario, "--site", site, "--out", out])

    def _start_process(self, name: str, words: Sequence[str]) -> "subprocess.Popen[bytes]":
        with (self._folder / f"{name}.out").open("wb") as output:
            return subprocess.Popen(
                [sys.executable, *words], cwd=ROOT, env=self._own.environment, stdout=output, stderr=output
            )

    # samples

    def _sample(self, at_s: float) -> None:
        for pid, role in self._roles().items():
            with contextlib.suppress(OSError):  # it has ended
                _prefer(pid)
                self._heaps[pid] = _heap_of(words_of(pid))  # a script may become a JVM
                used, descriptors = anonymous_bytes(pid), len(list(Path(f"/proc/{pid}/fd").iterdir()))
                if used:  # one that has ended and is not reaped has none
                    self._series.setdefault((role, pid), []).append(ResourceSample(at_s, used, descriptors))
        folders = {"queue of the master": "cluster/state", "data of the run": "results/*/data"}
        for role, pattern in folders.items():
            for folder in self._folder.glob(pattern):
                used = sum(_size_of(path) for path in folder.rglob("*"))
                self._series.setdefault((f"disk: {role}", 0), []).append(ResourceSample(at_s, used))

    def _roles(self) -> Mapping[int, str]:
        """Return the role of each process that is there."""
        assert self._sender is not None, "it was started"
        assert self._bench is not None, "it was started"
        found = {self._sender.pid: "connector", self._bench.pid: "harness"}
        found |= {process.pid: role for role, process in self._cluster.processes.items()}
        found |= dict.fromkeys(self._cluster.pe_pids(), "PE")
        for record in records(self._folder / "state" / "stream-bench" / "children"):
            found |= {pid: label_of(record.name, pid) for pid in record.running()}
        return found

    # end

    def _end(self) -> list[str]:
        """End both; return what did not hold."""
        if self._sender is None or self._bench is None:
            return ["it was interrupted while it started"]
        found = list(self._check_ended("connector", self._sender, (0,)))
        acknowledged = np.arange(0, read_mark(self._marks, 0), dtype=np.uint64)
        deadline = time.monotonic() + END_TIMEOUT_S
        while len(lost := np.setdiff1d(acknowledged, self._cluster.processed())) and time.monotonic() < deadline:
            time.sleep(1)
        if len(lost) or not len(acknowledged):
            found.append(f"{len(lost)} of {len(acknowledged)} acknowledged messages are lost")
        codes = {role: self._cluster.stop(role) for role in ("worker", "master")}
        found += [f"the {role} ended with {code}" for role, code in codes.items() if code != 0]
        return [*found, *self._check_ended("harness", self._bench, (0, 4, 130))]

    def _check_ended(self, role: str, process: "subprocess.Popen[bytes]", codes: Sequence[int]) -> Iterator[str]:
        """End a process; yield a violation if it had ended with another code, or does."""
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            yield f"the {role} did not end within {END_TIMEOUT_S:.0f} s"
            return
        if code not in codes:
            yield f"the {role} ended with {code}"


def _prefer(pid: int) -> None:
    """Give the session of a process more of the cores than others have, if root asks for it (sched(7), autogroup)."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(PREFERRED, encoding="ascii")


def anonymous_bytes(pid: int) -> int:
    """Return the resident memory of a process that is of no file (proc(5), RssAnon)."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return 1024 * int(next((line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:")), 0))


def _heap_of(words: Sequence[bytes]) -> int | None:
    """Return the largest heap of a JVM, in bytes, from its command line; None for another program."""
    units = {b"k": 2**10, b"m": 2**20, b"g": 2**30}
    given = next((word[4:].lower() for word in words if word.startswith(b"-Xmx")), None)
    if given is None:
        return None
    return int(given[:-1]) * units[given[-1:]] if given[-1:] in units else int(given)


def _size_of(path: Path) -> int:
    try:
        stat = path.stat()
    except OSError:  # deleted meanwhile
        return 0
    return stat.st_blocks * 512  # a file may have holes
