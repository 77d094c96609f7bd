"""Long measurements: whether advised workers are enough and one fewer are not, and what live sampling costs.

They are verbs of `python -m tests.measurements`. Operators that sleep are called throttled: on two cores more workers
than two can only be tried with them.
"""

# ruff: noqa: T201  the tables are what it is for
import argparse
import json
import math
import subprocess
import sys
import time
import timeit
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from bench.analysis.verdict import Rules, Verdict, judge
from bench.cli.inputs import cache_folder, children_folder, read_inputs
from bench.elasticity.live_samples import OPERATOR
from bench.runner.elasticity import read_policy_runs
from bench.runner.run import RunOptions, run
from bench.storage.run_folder import RunFolder, read_run, read_trials
from tests.explain_measurements import MAX_COST, interval_of
from tests.measurements import one_trial, run_once, search_verdicts

CALIBRATION_S, TRIAL_S, SETTLE_S, DRAIN_S = 24.0, 8.0, 2.0, 20.0
MAX_TRIES = 3
"""Of a trial that is invalid."""
MIN_ENOUGH, MIN_FEWER = 0.9, 0.8
"""Shares of the trials in which the advised workers sustain the rate, and one fewer do not."""


class AdvisedCell(Struct, frozen=True):
    """A cell for which advice is asked, from a calibration with one worker."""

    system: str
    setting: str
    """of a scenario, for the number of workers"""
    size: str
    cost: str
    rate: int
    """messages/s, chosen so that one worker fewer than the headroom asks for is too few without any headroom, too"""
    headroom: str
    throttled: bool = False

    @property
    def name(self) -> str:
        """Return a name for folders."""
        return f"{self.system}-{self.size}-{self.cost}".replace("/", "-").replace(" ", "")


PES = "settings.harmonicio.pes"
CELLS = (
    AdvisedCell("python/kafka", "settings.python.processes", "1 kB", "20 ms", 70, "20 %"),
    AdvisedCell("harmonicio/stream", PES, "10 kB", "10 ms", 140, "20 %"),
    AdvisedCell("harmonicio/stream", PES, "1 kB", "50 ms", 47, "10 %", throttled=True),
    AdvisedCell("harmonicio/stream", PES, "1 kB", "100 ms", 33, "10 %", throttled=True),
    AdvisedCell("harmonicio/stream", PES, "10 kB", "50 ms", 85, "5 %", throttled=True),
)
MAP = "name: advised\nsystems: [{system}]\ngrid: {{message_size: [{size}], cpu_cost: [{cost}]}}\nload: {{by: inline}}\n"
LIVE = """\
name: advised
kind: elasticity
systems: [{system}]
grid: {{message_size: [{size}], cpu_cost: [{cost}]}}
elasticity:
  load: [{{time: {seconds:g} s, rate: {rate:g} /s}}]
  policies: [fixed]
  interval: 2 s
  start: {workers}
  most: {workers}
  duty: 0 %
load: {{by: inline, seed: {seed}}}
timing: {{drain: {drain:g} s}}
settings: {{fixed: {{parallelism: {{system: {workers}}}}}, harmonicio: {{pes: {workers}}}}}
"""
SATURATED = """\
name: instrumentation
title: More messages than HarmonicIO takes, with a sample every second or every 13 s
kind: elasticity
systems: [harmonicio/stream]
grid: {message_size: [1 kB], cpu_cost: [100 us]}
elasticity:
  load: [{time: 26 s, rate: 40 k/s}]
  policies: [ds2]
  interval: 13 s
  start: 2
  most: 2
timing: {drain: 1 s}
settings: {harmonicio: {pes: 2}, ds2: {warm_up_time: 0 s}}
"""
RAMP_S = 13.5
"""Of a saturated run, which do not count: what is left lies between two samples where there are few."""


def add_verbs(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verbs to a command line."""
    advice = verbs.add_parser("advice", help="the advised workers sustain the rate, and one fewer do not")
    advice.add_argument("--runs", type=int, default=10, help="trials of each size")
    advice.add_argument("--seed", type=int, default=1, help="of the first trial; the next ones count on")
    advice.add_argument("--cells", nargs="+", type=int, default=list(range(len(CELLS))), help="numbers from 0")
    advice.set_defaults(run=measure_advice)
    instrumentation = verbs.add_parser("instrumentation", help="live samples do not lower the maximum rate")
    instrumentation.add_argument("--runs", type=int, default=10, help="pairs of runs")
    instrumentation.add_argument("--set", nargs="+", default=[], help="changes, such as grid.cpu_cost=[1 ms]")
    instrumentation.set_defaults(run=measure_instrumentation)


def measure_advice(asked: argparse.Namespace) -> bool:
    """Try the advised workers and one fewer in turn; return True if the advice is right as often as it must be."""
    rows = []
    for cell in (CELLS[number] for number in asked.cells):
        workers = ask_advice(cell, asked.out)
        verdicts: dict[int, list[str]] = {workers: [], workers - 1: []}
        for seed in range(asked.seed, asked.seed + asked.runs):
            for size, found in verdicts.items():
                found.append(try_workers(cell, size, seed, asked.out) if size else "no worker")
                print(f"{cell.name} {cell.rate}/s, {size} workers, seed {seed}: {found[-1]}", flush=True)
        rows.append((cell, workers, verdicts[workers].count("sustained"), _count_overloads(verdicts[workers - 1])))
    print(f"\n{'cell':32} {'rate':>6} {'headroom':>9} {'advised':>8}  sustained  one fewer overloaded")
    right = True
    for cell, workers, enough, fewer in rows:
        good = enough >= MIN_ENOUGH * asked.runs and fewer >= MIN_FEWER * asked.runs
        right &= good
        print(
            f"{cell.name:32} {cell.rate:4}/s {cell.headroom:>9} {workers:8} {enough:3} of {asked.runs:2} {fewer:3} of"
            f" {asked.runs:2}{' throttled' if cell.throttled else ''}{'' if good else ' WRONG'}"
        )
    return right


def _count_overloads(verdicts: Sequence[str]) -> int:
    return sum(verdict.startswith("overloaded") for verdict in verdicts)


def ask_advice(cell: AdvisedCell, out: Path) -> int:
    """Calibrate a cell with one worker, unless that was done; return the workers that `bench advise` calls enough."""
    into = out / f"advice-{cell.name}-calibration"
    if cell.throttled:
        cost = float(cell.cost.removesuffix(" ms")) / 1000
        folder = run_policies_once(into, _live(cell, CALIBRATION_S, rate=0.8 / cost))
    else:
        search = ["search.budget=60 s", "search.precision=10 %"]
        folder = run_once(into, _map(cell), [_workers(cell, 1), *search])
    options = ["--rate", f"{cell.rate}/s", "--headroom", cell.headroom, "--json"]
    command = [sys.executable, "-m", "bench", "advise", str(folder), *options]
    told = subprocess.run(command, check=False, capture_output=True, text=True)
    if told.returncode:
        sys.exit(f"{folder}: no advice: {told.stdout}{told.stderr}")
    (advice,) = json.loads(told.stdout)["advice"]
    least, enough = (advice["workers"][end] for end in ("least", "enough"))
    rate = " .. ".join(f"{advice[end]:.4g}" for end in ("low_hz", "high_hz") if advice[end] is not None)
    print(f"{cell.name}: one worker takes {rate}/s; for {cell.rate}/s {enough} workers are enough, {least} needed")
    return int(enough)


def try_workers(cell: AdvisedCell, workers: int, seed: int, out: Path) -> str:
    """Return the verdict of a trial with so many workers; an invalid one is tried again."""
    verdict, once = "", one_trial(cell.rate, TRIAL_S, SETTLE_S, DRAIN_S)
    for number in range(MAX_TRIES):
        into = out / f"advice-{cell.name}-{workers}-{seed}-{number}"
        if cell.throttled:
            folder = run_policies_once(into, _live(cell, TRIAL_S, rate=cell.rate, workers=workers, seed=seed))
            rules = Rules(read_run(folder).scenario.objectives, float(read_run(folder).scenario.search.precision))
            (entry,) = read_trials(folder)
            judged = judge(entry.measurement, rules)
        else:
            folder = run_once(into, _map(cell), [_workers(cell, workers), f"load.seed={seed}", *once])
            judged = next(iter(search_verdicts(folder)), Verdict("invalid", "no trial was run"))
        verdict = f"{judged.word} ({judged.why})" if judged.why else judged.word
        if judged.word != "invalid":
            break
    return verdict


def _map(cell: AdvisedCell) -> str:
    """Return the scenario of a cell that burns its cost."""
    return MAP.format(system=cell.system, size=cell.size, cost=cell.cost)


def _workers(cell: AdvisedCell, workers: int) -> str:
    return f"{cell.setting}={workers}"


def _live(cell: AdvisedCell, seconds: float, *, rate: float, workers: int = 1, seed: int = 1) -> str:
    """Return the scenario of a throttled cell at one rate with so many workers."""
    return LIVE.format(
        system=cell.system, size=cell.size, cost=cell.cost, seconds=seconds, rate=rate, workers=workers, seed=seed,
        drain=DRAIN_S,
    )  # fmt: skip


def run_policies_once(out: Path, scenario: str, changes: Sequence[str] = ()) -> Path:
    """Return the folder of a complete run of kind elasticity below `out`, which is made unless it exists."""
    for folder in sorted(out.glob("*/")):
        if (runs := read_policy_runs(folder)) and all(one.is_complete for one in runs):
            return folder
    out.mkdir(parents=True, exist_ok=True)
    file = out / "scenario.yaml"
    file.write_text(scenario, encoding="utf-8")
    chosen, site = read_inputs(file, None, list(changes))
    folder = RunFolder.create(out, chosen.name)
    options = RunOptions("python -m tests.measurements", cache_folder(), children_folder())
    run(chosen, site, folder, lambda _: None, options)  # no report, which takes as long as a short trial
    if unfinished := [one for one in read_policy_runs(folder.folder) if not one.is_complete]:
        sys.exit(f"{folder.folder}: {unfinished[0].end.reason if unfinished[0].end else 'not complete'}")
    return folder.folder


def measure_instrumentation(asked: argparse.Namespace) -> bool:
    """Saturate HarmonicIO with and without live samples in turn; return True if these cost MAX_COST at most.

    With samples DS2 looks every second and may change nothing; without them it looks twice, and the time between these
    two looks is measured. What the PEs count of their own useful time cannot be switched off: it is bounded by the time
    of these statements.
    """
    ratios, rates, workers = list[float](), list[float](), 1
    for number in range(asked.runs):
        found = dict[str, float | None]()
        for sampled in (number % 2 == 0, number % 2 == 1):  # the order changes, so that drift favours neither
            word = "on" if sampled else "off"
            changes = [*(["elasticity.interval=1 s"] if sampled else []), *asked.set]
            folder = run_policies_once(asked.out / f"instrumentation-{number}-{word}", SATURATED, changes)
            found[word] = read_saturated_rate(folder)
            workers = len(read_policy_runs(folder)[0].decisions[-1].sample.operators[OPERATOR])
        on, off = found["on"], found["off"]
        print(f"pair {number}: {_rate(on)} with samples, {_rate(off)} without", flush=True)
        if on and off:
            ratios.append(on / off)
            rates += [on, off]
    low, middle, high = interval_of(ratios)
    counters = time_counters() * float(np.median(rates)) / workers if rates else math.nan
    print(f"ratio {middle:.4f} [{low:.4f} .. {high:.4f}], 95 %, {len(ratios)} pairs of {asked.runs}")
    print(f"counters of a PE: at most {counters:.2%} of its time, which would be so if each call had one message")
    return 1 - middle + counters <= MAX_COST


def _rate(rate: float | None) -> str:
    return "no rate" if rate is None else f"{rate:.5g}/s"


def read_saturated_rate(folder: Path) -> float | None:
    """Return the messages/s that were processed after the ramp; None if other work or the load generator limited it."""
    (entry,) = read_trials(folder)
    measurement = entry.measurement
    verdict = judge(measurement, Rules())
    if verdict.word != "overloaded":
        print(f"{folder}: {verdict.word} {verdict.why}: only a saturated system shows its maximum")
        return None
    at, processed = np.asarray(measurement.series.at), np.asarray(measurement.series.processed)
    inside = (at >= RAMP_S) & (at <= measurement.planned.window)
    return float((processed[inside][-1] - processed[inside][0]) / (at[inside][-1] - at[inside][0]))


def time_counters() -> float:
    """Return the seconds that a PE's function spends on its own counters in one call: two clocks and two additions."""
    counts = {"busy": 0.0, "processed": 0}

    def count() -> None:
        began = time.monotonic()
        counts["busy"] += time.monotonic() - began
        counts["processed"] += 1

    return min(timeit.repeat(count, number=100_000, repeat=5)) / 100_000
