"""Runs of the whole procedure on simulated systems of known capacity: real searches, in no time.

Plans, visits, searches, verdicts, journal and results are those of a run. Only what needs time and servers is
replaced: a deployment and its trials by the shipped fluid queue (`bench.simulation`), whose capacity is known. No call
is recorded and none is expected, so nothing here repeats the code that it tests. A parameter of `run` for it would be
one that no run ever has.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from msgspec.structs import replace

from bench.calibration.generator_ceiling import GeneratorCeilings
from bench.config.scenario import Grid, Scenario, Search
from bench.config.site import Site
from bench.model.measurement import Measurement, PlannedTrial
from bench.model.message_sizes import MessageSize
from bench.runner import cell_search
from bench.runner.cell_plan import CellPlan
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


def make_simulated_run(folder: Path, scenario: Scenario = SCENARIO) -> Path:
    """Run a scenario on simulated systems into a new folder; return it."""
    folder.mkdir()
    options = RunOptions("bench run x", folder, folder / "children")
    with simulated_systems():
        run(scenario, Site(), RunFolder(folder), lambda _event: None, options)
    return folder


@contextmanager
def simulated_systems() -> Iterator[None]:
    """Let deployments be simulated: every trial of a cell is one of a fluid queue, and no server is started."""
    with (
        mock.patch.object(cell_search, "deployed", _deployed),
        mock.patch.object(cell_search, "run_trial", _run_trial),
        mock.patch.object(GeneratorCeilings, "measure", return_value=GENERATOR_HZ),
        mock.patch("bench.runner.run.prepare_services"),  # no server is started
    ):
        yield


@contextmanager
def _deployed(plan: CellPlan, _env: object) -> Iterator[SimpleNamespace]:
    capacity = 1 / (1 / 30_000 + plan.cell.message_bytes / 50e6 + plan.cell.cpu_seconds)
    system = Fluid(Traits(capacity, batch_interval=plan.batch_interval), Faults(), seed=plan.cell.message_bytes)

    def make_ready(last: Measurement) -> None:
        if not last.deployment_reusable:
            system.restart()

    yield SimpleNamespace(system=system, make_ready=make_ready, is_warm=True, warm_s=math.inf, plan=plan)


def _run_trial(deployment: SimpleNamespace, planned: PlannedTrial, _notify: object) -> Measurement:
    measured: Measurement = deployment.system.run_trial(planned, 30.0)
    cost = measured.processed * deployment.plan.cell.cpu_seconds
    return replace(measured, cpu_requested_s=cost, cpu_used_s=cost)
