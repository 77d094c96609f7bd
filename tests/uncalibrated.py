"""A backend for runs whose trials are looked at, and not the limit of the load generator."""

from bench.plugins.environment import RunEnvironment
from bench.runner.backend import PluginBackend
from bench.runner.cell_plan import CellPlan


class Uncalibrated(PluginBackend):
    """The backend of every run of `bench`, without a calibration before the first trial of a source and size."""

    def generator_hz(self, plan: CellPlan, env: RunEnvironment) -> None:
        """Return that it is not known."""
