"""Runs of the whole procedure on simulated systems of known capacity: real searches, in no time.

Plans, visits, searches, verdicts, journal and results are those of a run. Only what needs time and servers is
another one: the backend deploys the shipped fluid queue (`bench.simulation`), whose capacity is known.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from bench.config.scenario import Grid, Scenario, Search
from bench.config.site import Site
from bench.model.measurement import Measurement, PlannedTrial, Result
from bench.model.message_sizes import MessageSize
from bench.plugins.environment import RunEnvironment
from bench.runner.backend import Backend
from bench.runner.cell_plan import CellPlan
from bench.runner.progress import Notify
from bench.runner.run import RunOptions, run
from bench.simulation.capacity import Traits
from bench.simulation.faults import Faults
from bench.simulation.fluid import Fluid
from bench.storage.run_folder import RunFolder
from bench.units import Seconds, Share

SCENARIO = Scenario(
    "simulated",
    ("python/kafka", "spark/kafka"),
    Grid((MessageSize(100), MessageSize(1000), MessageSize(10_000)), (Seconds(0), Seconds(0.001))),
    search=Search(precision=Share(0.1), budget=Seconds(600)),
)
GENERATOR_HZ = 40_000.0
Change = Callable[[Measurement], Measurement]


def make_simulated_run(folder: Path, scenario: Scenario = SCENARIO, *, change: Change | None = None) -> Path:
    """Run a scenario on simulated systems into a new folder; return it."""
    folder.mkdir()
    run_simulated(scenario, Site(), RunFolder(folder), change=change)
    return folder


def run_simulated(
    scenario: Scenario,
    site: Site,
    folder: RunFolder,
    *,
    notify: Notify = lambda _: None,
    change: Change | None = None,
) -> list[Result]:
    """Run a scenario on simulated systems; `change` is made of every measurement."""

    def backend(_: Path) -> Backend:
        return SimulatedBackend(change)

    place = folder.folder
    return run(scenario, site, folder, notify, RunOptions("bench run x", place, place / "children", backend=backend))


class SimulatedBackend:
    """A backend without servers, whose trials take no time."""

    def __init__(self, change: Change | None = None, *, warm_hz: float | None = None) -> None:
        self._change, self._warm_hz = change, warm_hz
        self.times_left: list[float] = []
        """that each trial was told, in seconds"""

    def prepare(self, plans: Iterable[CellPlan], env: RunEnvironment) -> None:
        """Start nothing."""

    def generator_hz(self, plan: CellPlan, env: RunEnvironment) -> float:
        return GENERATOR_HZ

    @contextmanager
    def deployed(self, plan: CellPlan, env: RunEnvironment) -> Iterator["SimulatedCell"]:
        """Yield a queue whose capacity follows from size and CPU cost."""
        yield SimulatedCell(plan, self._change, self._warm_hz, self.times_left)


class SimulatedCell:
    """A fluid queue in place of a cell's deployment."""

    is_new = False

    def __init__(self, plan: CellPlan, change: Change | None, warm_hz: float | None, times_left: list[float]) -> None:
        self._cell, self._change, self._warm_hz, self._times_left = plan.cell, change, warm_hz, times_left
        capacity = 1 / (1 / 30_000 + plan.cell.message_bytes / 50e6 + plan.cell.cpu_seconds)
        traits = Traits(capacity, batch_interval=plan.batch_interval)
        self._system = Fluid(traits, Faults(), seed=plan.cell.message_bytes)

    def warm_up(self, notify: Notify) -> float | None:
        """Return what a warm-up is to show: its processes are warm."""
        return self._warm_hz

    def run_trial(self, planned: PlannedTrial, notify: Notify, time_left: float) -> Measurement:
        """Return the measurement of a trial of the queue."""
        self._times_left.append(time_left)
        measured = self._system.run_trial(planned, 30.0, time_left)
        cost = measured.processed * self._cell.cpu_seconds
        measured = replace(measured, cpu_requested_s=cost, cpu_used_s=cost)
        return self._change(measured) if self._change is not None else measured

    def make_ready(self, last: Measurement) -> None:
        """Replace it where messages were left in it."""
        if not last.deployment_reusable:
            self._system.restart()


class NoBackend:
    """A backend of runs that have to need no trial."""

    def __init__(self, _folder: Path) -> None:
        pass

    def prepare(self, plans: Iterable[CellPlan], env: RunEnvironment) -> None:
        """Start nothing."""

    def generator_hz(self, plan: CellPlan, env: RunEnvironment) -> None:
        """Return that it is not known."""

    def deployed(self, plan: CellPlan, env: RunEnvironment) -> None:
        """Fail the test."""
        raise AssertionError(f"{plan.cell.name} is deployed, and all its trials are in the journal")
