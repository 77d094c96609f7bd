"""Profiles of a cell of a run: it runs again at the rate that it has sustained, and its busy processes are sampled.

Nothing of it is a measurement: a profiler slows down what it looks at.
"""

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bench.errors import HarnessError, UsageError
from bench.model.cell import Cell
from bench.model.measurement import PlannedTrial
from bench.plugins.environment import RunEnvironment
from bench.runner.cell_plan import plan_cell
from bench.runner.core_sets import core_sets, framework_cores
from bench.runner.deployment import deployed
from bench.runner.preparation import prepare_services
from bench.runner.progress import Note, Notify, ProgressEvent, TrialProgress, TrialStarted
from bench.runner.run import RunOptions
from bench.runner.trial import run_trial
from bench.runner.warm_up import warm_up_session
from bench.services.async_profiler import fetch_async_profiler
from bench.storage.run_folder import read_results, read_run
from bench.system.child import Child
from bench.system.procfs import members_of
from bench.system.supervisor import Supervisor
from bench.telemetry.profilers import CpuUse, FlameGraph, Profilers, runtime_of

FOLDER = "profiles"
PROFILE_S = 20.0
"""Seconds that are profiled."""
SETTLE_S, SETTLE_BATCHES = 5.0, 3.0
"""Seconds of load, and batch intervals, before that, whichever take longer."""


class ProfiledCell(Struct, frozen=True):
    """A cell of a run with the rate at which it is profiled, and for how long."""

    cell: Cell
    rate: float
    """messages/s"""
    settle_s: float = SETTLE_S
    profile_s: float = PROFILE_S


def choose_rate(folder: Path, cell: Cell) -> ProfiledCell:
    """Return a cell of a run with the highest rate that it sustained; UsageError if it has none."""
    result = next((one for one in read_results(folder) if one.cell == cell), None)
    rate = (result.confirmed_hz or result.low_hz) if result is not None else None
    if rate is None:
        raise UsageError(f"{cell.name}: has no rate in {folder}, at which it could be profiled")
    return ProfiledCell(cell, rate)


def profile_cell(
    folder: Path, profiled: ProfiledCell, py_spy: Path, notify: Notify, options: RunOptions
) -> list[FlameGraph]:
    """Deploy a cell again, sample its busy processes under load, and return their flame graphs.

    Args:
        folder: the run folder; the graphs are put into profiles/CELL there.
        profiled: the cell and its rate.
        py_spy: its executable.
        notify: called with progress.
        options: of the run.

    Raises:
        UsageError: the cell is not supported here.
    """
    record, cell = read_run(folder), profiled.cell
    scenario, cores = replace(record.scenario, trace=False), framework_cores(record.scenario)
    place = folder / FOLDER / cell.name
    place.mkdir(parents=True, exist_ok=True)
    plan = plan_cell(cell, scenario, record.site, cores, options.cache)
    if plan.unsupported_reason is not None:
        raise UsageError(f"{cell.name}: {plan.unsupported_reason}")
    supervisor = Supervisor(options.children, place / "logs")
    supervisor.cores_of = core_sets(scenario)
    with RunEnvironment(
        record.site, supervisor, place / "data", options.cache, cores=cores,
        note=lambda text: notify(Note(text)),
    ) as env:  # fmt: skip
        prepare_services([plan], env)
        with deployed(plan, env) as deployment:
            warm_up_session(deployment, notify)
            sampling = _Sampling(env, place, py_spy, profiled.profile_s)
            settle = max(profiled.settle_s, SETTLE_BATCHES * plan.batch_interval)
            planned = PlannedTrial(0, profiled.rate, settle, profiled.profile_s, "search")
            notify(TrialStarted(planned))
            run_trial(deployment, planned, lambda event: _pass_on(event, sampling, notify))
            return sampling.profilers.finish()


class _Sampling:
    """The profilers of a trial, which start with its window."""

    def __init__(self, env: RunEnvironment, place: Path, py_spy: Path, seconds: float) -> None:
        self._env, self._seconds, self._started = env, seconds, False
        self._use = CpuUse(self._children())
        self.profilers = Profilers(env.supervisor, place, py_spy, self._agent())

    def start(self) -> None:
        """Start once."""
        if not self._started:
            self._started = True
            self.profilers.start(self._use.busy(self._children()), self._seconds - 1.0)

    def _agent(self) -> Path | None:
        """Return the profiler's agent where the cell has a JVM; None, with a note, where it cannot be had."""
        if not any(runtime_of(stat.pid) == "java" for child in self._children() for stat in members_of(child.pid)):
            return None
        try:
            return fetch_async_profiler(self._env.cache, self._env.note)
        except HarnessError as problem:
            self._env.note(f"JVMs are not profiled: {problem}")
            return None

    def _children(self) -> list[Child]:
        return [child for child in self._env.supervisor.children if child.role != "load"]


def _pass_on(event: ProgressEvent, sampling: _Sampling, notify: Notify) -> None:
    notify(event)
    if isinstance(event, TrialProgress) and event.phase == "measuring":
        sampling.start()
