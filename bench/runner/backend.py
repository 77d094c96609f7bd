"""The backend of a run: what starts, calibrates and deploys for its cells, and runs their trials."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from bench.calibration.generator_ceiling import GeneratorCeilings
from bench.model.measurement import Measurement, PlannedTrial
from bench.plugins.environment import RunEnvironment
from bench.runner.cell_plan import CellPlan
from bench.runner.deployment import Deployment, deployed
from bench.runner.preparation import prepare_services
from bench.runner.progress import Notify
from bench.runner.trial import run_trial
from bench.runner.warm_up import warm_up_session


class DeployedCell(Protocol):
    """A deployment of one cell."""

    @property
    def is_new(self) -> bool:
        """Return whether its framework was not under load so far."""

    def warm_up(self, notify: Notify) -> float | None:
        """Load new processes of the framework until they are warm; do nothing where they are.

        Returns:
            The messages/s that the framework kept up with; None where the warm-up does not show it.
        """

    def run_trial(self, planned: PlannedTrial, notify: Notify, time_left: float) -> Measurement:
        """Run one trial, and return its measurement; after `time_left` seconds the deployment is of no further use."""

    def make_ready(self, last: Measurement) -> None:
        """Empty the deployment after its last trial; replace it where messages were left in it or a process died."""


class Backend(Protocol):
    """A way to measure cells."""

    def prepare(self, plans: Iterable[CellPlan], env: RunEnvironment) -> None:
        """Start what outlives the cells of these plans."""

    def generator_hz(self, plan: CellPlan, env: RunEnvironment) -> float | None:
        """Return the messages/s that the load generator reaches without a framework; None where it is not known."""

    def deployed(self, plan: CellPlan, env: RunEnvironment) -> AbstractContextManager[DeployedCell]:
        """Deploy a cell for as long as the block lasts."""


class PluginBackend:
    """The backend of every run of `bench`: the installed plugins."""

    def __init__(self, folder: Path) -> None:
        self._ceilings = GeneratorCeilings(folder)

    def prepare(self, plans: Iterable[CellPlan], env: RunEnvironment) -> None:
        """Start servers, sessions and load generators, side by side."""
        prepare_services(plans, env)

    def generator_hz(self, plan: CellPlan, env: RunEnvironment) -> float | None:
        """Return what a calibration shows; there is one for each source and message size of a run."""
        return self._ceilings.measure(plan.cell, plan.scenario, env)

    @contextmanager
    def deployed(self, plan: CellPlan, env: RunEnvironment) -> Iterator[DeployedCell]:
        """Open source, load generator and framework for as long as the block lasts."""
        with deployed(plan, env) as deployment:
            yield _DeployedPlugins(deployment)


class _DeployedPlugins:
    """A deployed cell of which every part is a plugin."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    @property
    def is_new(self) -> bool:
        return self._deployment.warm_s == 0

    def warm_up(self, notify: Notify) -> float | None:
        return warm_up_session(self._deployment, notify)

    def run_trial(self, planned: PlannedTrial, notify: Notify, time_left: float) -> Measurement:
        return run_trial(self._deployment, planned, notify, time_left=time_left)

    def make_ready(self, last: Measurement) -> None:
        self._deployment.make_ready(last)
