"""The parts of a campaign, side by side, each a process with a log of its own.

known      kills of the harness, in runs whose maximum is known
systems    runs of Kafka, Spark, Flink, ...
histories  of HarmonicIO
inputs     invented, for every reader
soak       a cluster and a run that nothing hits: their memory, descriptors and disks are watched

Most of them wait most of the time, for a process to start or to end, so that together they use two cores.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.campaign import fuzzing
from tests.campaign.campaign import Campaign, Limits
from tests.campaign.outcomes import FuzzRecord, Log, Record, figures_of, progress, summary, violations_of
from tests.campaign.soak import Soak
from tests.campaign.subjects import SUBJECTS as RUNS

SUBJECTS = (*(subject.name for subject in RUNS), "history", "input", "soak")
NAMES = ("known", "systems", "histories", "inputs", "soak")
FOLLOWING = ("inputs", "soak")
"""These end when all others have reached their limits."""
_OWN = {"known": "known", "histories": "history", "inputs": "input", "soak": "soak"}
"""The subject of each part that has but one; the systems are all others."""
ROOT = Path(__file__).parents[2]
INPUTS = 1_000_000
"""For each target, where the time lasts."""
SLICE_S = 30.0
"""For one target, until the next one has its turn."""
INPUTS_NICE = 5
"""Of the process that draws inputs: it needs no moment, and takes what the others leave."""
TELL_INTERVAL_S = 5.0
INTERRUPTED = 130
"""The exit code of a part that follows, where the others have reached their limits first."""
END_TIMEOUT_S = 180.0
"""For a part to undo what it does, after an interrupt."""


class CampaignPlan(Struct, frozen=True):
    """What decides a campaign; in its folder."""

    seed: int
    subjects: tuple[str, ...]
    """names of runs; "history", "input" and "soak" for the parts that have no run"""
    limits: Limits


def read_plan(folder: Path) -> CampaignPlan:
    """Return the plan of a campaign that was begun."""
    return msgspec.json.decode((folder / "plan.json").read_bytes(), type=CampaignPlan)


def read_records(folder: Path) -> list[Record]:
    """Return what all parts have recorded so far."""
    return [record for name in NAMES for record in _log(folder, name).records()]


def run(folder: Path, plan: CampaignPlan, say: Callable[[str], None]) -> bool:
    """Run all parts until their limits, and tell every few seconds how far they are.

    Args:
        folder: Of the campaign; with the logs of earlier calls if it is resumed.
        plan: What decides it.
        say: Prints a line.

    Returns:
        Whether everything held. The sums are in figures.json and figures.md, renewed while it runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    began, told = time.monotonic(), list[str]()
    running = {name: _start(name, folder) for name in NAMES if _subjects(name, plan)}
    deciding = [part for name, part in running.items() if name not in FOLLOWING] or list(running.values())
    try:
        while left := [part for part in deciding if part.poll() is None]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                left[0].wait(TELL_INTERVAL_S)
            told = _tell(folder, time.monotonic() - began, told, say)
    finally:
        for part in running.values():
            part.terminate()
        codes = {name: _end(part) for name, part in running.items()}
        _tell(folder, time.monotonic() - began, told, say)
    allowed = {name: (0, 1, INTERRUPTED) if name in FOLLOWING else (0, 1) for name in codes}
    failed = [name for name, code in codes.items() if code not in allowed[name]]
    for name in failed:
        say(f"the part {name} ended with {codes[name]}: {folder / name}.out")
    return not failed and not violations_of(read_records(folder))


def run_part(name: str, folder: Path, say: Callable[[str], None]) -> bool:
    """Run one part until its limits; return whether all of it held."""
    plan, log = read_plan(folder), _log(folder, name)
    if name == "inputs":
        os.nice(INPUTS_NICE)
        _fuzz_all(plan, log)
    elif name == "soak":
        soak = Soak(folder / f"soak-{time.time_ns()}", plan.limits.seconds)
        with contextlib.suppress(KeyboardInterrupt):  # the others have reached their limits
            soak.watch()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # nothing is left to interrupt
        for record in soak.end():
            log.add(record)
    else:
        Campaign(folder, log, plan.seed, say).run(_subjects(name, plan), plan.limits)
    return not violations_of(log.records())


def end_with_parent() -> None:
    """Interrupt this process when standard input ends: its other end is the parent's."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def _fuzz_all(plan: CampaignPlan, log: Log) -> None:
    """Give each target its turns, until all have had their inputs or the time is over."""
    used = sum(record.seconds for record in log.records() if isinstance(record, FuzzRecord))
    deadline, unfinished = time.monotonic() + plan.limits.seconds - used, fuzzing.names()
    while unfinished and time.monotonic() < deadline:
        for name in list(unfinished):
            seconds = min(SLICE_S, deadline - time.monotonic())
            for _ in fuzzing.fuzz_on(name, INPUTS, plan.seed, log, seconds=seconds):
                pass
            if fuzzing.given_before(name, plan.seed, log) >= INPUTS:
                unfinished.remove(name)


def _subjects(name: str, plan: CampaignPlan) -> list[str]:
    """Return the subjects of a part."""
    own = [_OWN[name]] if name in _OWN else [one for one in SUBJECTS if one not in _OWN.values()]
    return [one for one in own if one in plan.subjects]


def _start(name: str, folder: Path) -> "subprocess.Popen[bytes]":
    """Start a part in a session of its own, so that Ctrl-C reaches it through this process alone."""
    with (folder / f"{name}.out").open("ab") as out:
        command = [sys.executable, "-m", "tests.campaign", "part", name, str(folder.absolute())]
        return subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True
        )


def _end(part: "subprocess.Popen[bytes]") -> int:
    """Wait until a part has undone what it did; return its exit code."""
    assert part.stdin is not None, "it was started with a pipe"
    with part.stdin:
        try:
            return part.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            part.kill()
            return part.wait()


def _tell(folder: Path, seconds: float, told: Collection[str], say: Callable[[str], None]) -> list[str]:
    """Print the violations that are not told yet, and how far all is; return all violations."""
    records = read_records(folder)
    found = violations_of(records)
    for text in found:
        if text not in told:
            say(text)
    say(f"{seconds / 60:5.1f} min: {progress(records)}")
    (folder / "figures.json").write_bytes(msgspec.json.encode(figures_of(records)))
    (folder / "figures.md").write_text(summary(records), encoding="utf-8")
    return found


def _log(folder: Path, name: str) -> Log:
    return Log(folder / f"{name}.jsonl")
