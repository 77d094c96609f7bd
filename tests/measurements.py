"""Long measurements that show if intervals hold. They are no tests: they take hours and want a machine of their own.

    python -m tests.measurements windows spark/kafka spark/tcp --seconds 5 15 60 300
    python -m tests.measurements soak results/quick-... --cells 3 --seconds 600
    python -m tests.measurements beside scenarios/quick.yaml --duties 0.25 --fair
    python -m tests.measurements beside scenarios/known-ceilings.yaml --duties 0.05 0.1 0.15 0.2 0.25
    python -m tests.measurements tracing spark/kafka python/kafka --runs 10
    python -m tests.measurements planted --runs 10
    python -m tests.measurements advice --runs 10
    python -m tests.measurements instrumentation --runs 10

Each one ends with a table and with exit code 1 if something contradicts. Runs are kept in results/, and a measurement
that was interrupted goes on where it ended: a run folder that is complete is not measured again.
"""

# ruff: noqa: T201  the tables are what it is for
import argparse
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from bench.analysis.verdict import Verdict
from bench.model.measurement import Result
from bench.plugins import registry
from bench.storage.run_folder import read_results, read_run, read_speed
from bench.system.machine_speed import speed_ratios
from frameworks.capacity.adapter import CapacitySettings
from frameworks.python.adapter import PythonSettings
from reports.data.run_data import read_run_data

WINDOWS = """\
name: windows
title: One cell, measured with windows of different lengths
systems: [spark/kafka]
grid: {message_size: [10 kB], cpu_cost: [1 ms]}
search: {strategy: two-counter, precision: 15 %}
settings:
  spark: {batch_interval: 1 s}
"""
SOAK = """\
name: soak
systems: [python/kafka]
grid: {message_size: [1 kB]}
"""
TRIALS, LATER_TRIALS = 6, 4
"""The budget of a search lasts for so many trials; for fewer where an earlier window tells where to begin."""
WARM_UP_S = 60.0
"""A session of Spark becomes faster for so long."""
TRIAL_OVERHEAD_S = 10.0
SETTLE_S, DRAIN_S = 20.0, 60.0
EXPECTED = {"low": "sustained", "middle": None, "high": "overloaded"}
"""The verdict that a long trial at each end of an interval must have; at the middle either is right."""


def main() -> None:
    """Parse the command line and run one measurement."""
    from tests import elasticity_measurements, explain_measurements  # they import this module

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True)
    windows = verbs.add_parser("windows", help="the intervals of one cell at windows of different lengths overlap")
    windows.add_argument("systems", nargs="+")
    windows.add_argument("--seconds", nargs="+", type=float, default=[5, 15, 60, 300])
    windows.set_defaults(run=measure_windows)
    soak = verbs.add_parser("soak", help="the low end of an interval is sustained for long, the high end is not")
    soak.add_argument("folder", type=Path, help="a finished run")
    soak.add_argument("--cells", type=int, default=3, help="so many of its cells, the narrowest intervals first")
    soak.add_argument("--systems", nargs="+", help="only cells of these")
    soak.add_argument("--seconds", type=float, default=600)
    soak.add_argument("--ends", nargs="+", choices=EXPECTED, default=list(EXPECTED), help="where to run a long trial")
    soak.set_defaults(run=measure_soaks)
    beside = verbs.add_parser("beside", help="run a scenario beside a process that takes a share of the machine")
    beside.add_argument("scenario", type=Path)
    beside.add_argument("--duties", nargs="+", type=float, default=[0.25])
    beside.add_argument("--fair", action="store_true")
    beside.add_argument("--set", nargs="+", default=[], help="changes to the scenario, such as timing.window=3s")
    beside.set_defaults(run=measure_beside)
    explain_measurements.add_verbs(verbs)
    elasticity_measurements.add_verbs(verbs)
    for verb in verbs.choices.values():
        verb.add_argument("--out", type=Path, default=Path("results"))
    asked = parser.parse_args()
    run: Callable[[argparse.Namespace], bool] = asked.run
    sys.exit(0 if run(asked) else 1)


def measure_windows(asked: argparse.Namespace) -> bool:
    """Measure the cell of each system with each window; return True if all intervals of a system overlap."""
    agree = True
    for system in asked.systems:
        found: list[tuple[float, Result]] = []
        for seconds in asked.seconds:
            trials = LATER_TRIALS if found else TRIALS
            budget = trials * (seconds + TRIAL_OVERHEAD_S) + WARM_UP_S
            changes = [f"systems=[{system}]", f"timing.window={seconds:g} s", f"search.budget={budget:g} s"]
            if found and found[-1][1].estimate_hz:
                changes.append(f"search.start={found[-1][1].estimate_hz:.6g} /s")
            folder = run_once(asked.out / f"windows-{system.replace('/', '-')}-{seconds:g}s", WINDOWS, changes)
            found.append((seconds, read_results(folder)[0]))
        print(f"\n{system}\n{'window':>8}  {'low':>8} {'estimate':>9} {'high':>8}  trials")
        for seconds, result in found:
            print(f"{seconds:6g} s  {describe(result)}  {result.trials}")
        for (first, one), (second, other) in combinations(found, 2):
            if not overlap(one, other):
                agree = False
                print(f"the intervals at {first:g} s and {second:g} s do not overlap")
    return agree


def measure_soaks(asked: argparse.Namespace) -> bool:
    """Run a long trial at each end and the estimate of an interval; return True if the verdicts are as promised."""
    results = [result for result in read_results(asked.folder) if result.status == "measured"]
    if asked.systems:
        results = [result for result in results if result.cell.system in asked.systems]
    results.sort(key=lambda result: (result.high_hz or 0) / (result.low_hz or 1))
    settings = read_run(asked.folder).scenario.settings
    right = True
    for result in results[: asked.cells]:
        rates = {"low": result.low_hz, "middle": result.estimate_hz, "high": result.high_hz}
        for end, rate in rates.items():
            if rate is None or end not in asked.ends:  # a measured cell has all three
                continue
            changes = [
                f"systems=[{result.cell.system}]",
                f"grid.message_size=[{result.cell.message_bytes} B]",
                f"grid.cpu_cost=[{result.cell.cpu_seconds * 1000:g} ms]",
                *one_trial(rate, asked.seconds, SETTLE_S, DRAIN_S),
                *(
                    f"settings.{plugin}.{name}={value}"
                    for plugin, own in settings.items()
                    for name, value in own.items()
                ),
            ]
            cell = f"{result.cell.system}-{result.cell.message_bytes}-{result.cell.cpu_seconds:g}".replace("/", "-")
            folder = run_once(asked.out / f"soak-{cell}-{end}-{rate:.4g}", SOAK, changes)
            words = [verdict.word for verdict in search_verdicts(folder)]
            wrong = EXPECTED[end] is not None and EXPECTED[end] not in words
            right &= not wrong
            speeds = speed_ratios(read_speed(asked.folder), read_speed(folder))
            machine = "".join(f", {kind} {ratio:.2f} times as fast" for kind, ratio in speeds.items())
            print(f"{cell} {end} {rate:.4g}/s: {', '.join(words)}{' WRONG' if wrong else ''}{machine}")
    return right


def one_trial(rate: float, seconds: float, settle: float, drain: float) -> list[str]:
    """Return the changes to a scenario with which the search of a cell runs one trial, at this rate in messages/s."""
    return [
        "search.strategy=two-counter",  # the first trial of a bisection is a shorter one
        f"search.lowest={0.99 * rate:.6g} /s",
        *(f"search.{key}={rate:.6g} /s" for key in ("start", "highest")),
        f"search.budget={settle + seconds + drain + TRIAL_OVERHEAD_S:g} s",
        f"timing.settle={settle:g} s",
        f"timing.window={seconds:g} s",
        f"timing.drain={drain:g} s",
    ]


def search_verdicts(folder: Path) -> list[Verdict]:
    """Return the verdicts of the trials of a run's first cell, without those that only warmed it up."""
    trials = read_run_data(folder).cells[0].trials
    return [trial.verdict for trial in trials if trial.measurement.planned.purpose == "search"]


def measure_beside(asked: argparse.Namespace) -> bool:
    """Run a scenario beside the burner; return True if it can be verified and at most one in 20 intervals is wrong."""
    cells, wrong, verified = 0, 0, True
    for seed, duty in enumerate(asked.duties):
        burns = [f"--duty={duty}", f"--seed={seed}", "--seconds=86400", *(["--fair"] if asked.fair else [])]
        burner = subprocess.Popen([sys.executable, "-m", "tests.burner", *burns])
        try:
            folder = run_once(
                asked.out / f"beside-{asked.scenario.stem}-{duty:g}", asked.scenario.read_text(), asked.set
            )
        finally:
            burner.terminate()
            burner.wait()
        for result in read_results(folder):
            ceiling = known_ceiling(result, read_run(folder).scenario.settings)
            cells, contradicts = cells + 1, ceiling is not None and not holds(result, ceiling)
            wrong += contradicts
            known = "" if ceiling is None else f"WRONG: {ceiling:g}/s" if contradicts else f"holds {ceiling:g}/s"
            print(f"{duty:g} {result.cell.name}: {result.status} {describe(result)} {result.reason or ''} {known}")
        checked = subprocess.run([sys.executable, "-m", "bench", "verify", str(folder)], check=False)
        verified &= checked.returncode == 0
    print(f"{wrong} of {cells} intervals are wrong")
    return verified and 20 * wrong <= cells


def known_ceiling(result: Result, settings: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Return the maximum in messages/s that a system is known to have; None if it is not known."""
    own = registry.settings_of_framework(result.framework, settings)
    if isinstance(own, CapacitySettings):
        return float(own.ceiling)
    if isinstance(own, PythonSettings) and own.processes and result.cpu_seconds:
        return own.processes / result.cpu_seconds
    return None


def holds(result: Result, rate: float) -> bool:
    """Return True if a result's interval has a rate in it; a missing end is open."""
    return (result.low_hz or 0.0) <= rate <= (result.high_hz or math.inf)


def run_once(out: Path, scenario: str, changes: Sequence[str], variables: Mapping[str, str] | None = None) -> Path:
    """Run a scenario below `out`, with more environment variables, unless a complete run is there; return the run."""
    for folder in sorted(out.glob("*/")):
        if (folder / "cells.json").exists() and len(read_results(folder)) == len(read_run(folder).scenario.cells()):
            return folder
    out.mkdir(parents=True, exist_ok=True)
    file = out / "scenario.yaml"
    file.write_text(scenario, encoding="utf-8")
    words = [word for change in changes for word in ("--set", change)]
    command = [sys.executable, "-m", "bench", "run", str(file), "--out", str(out), *words]
    done = subprocess.run(command, check=False, env={**os.environ, **(variables or {})})
    if done.returncode not in (0, 4):
        sys.exit(done.returncode)
    return next(folder for folder in sorted(out.glob("*/")) if (folder / "cells.json").exists())


def describe(result: Result) -> str:
    """Low end, estimate and high end in messages/s; a dash for what is unknown."""
    numbers = (result.low_hz, result.estimate_hz, result.high_hz)
    return " ".join(f"{'-' if number is None else f'{number:.4g}':>8}" for number in numbers)


def overlap(one: Result, other: Result) -> bool:
    """Return True unless one interval lies wholly above the other; a missing end is no limit."""
    lows, highs = (one.low_hz or 0.0, other.low_hz or 0.0), (one.high_hz, other.high_hz)
    return all(high is None or low <= high for low, high in zip(lows, reversed(highs), strict=True))


if __name__ == "__main__":
    main()
