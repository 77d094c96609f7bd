"""Sets of cores that keep the load generator and the system under test apart."""

from bench.config.scenario import Scenario
from bench.errors import UsageError
from bench.system import host_info
from bench.system.child import Role


def core_sets(scenario: Scenario) -> dict[Role, list[int]]:
    """Return the cores of child processes by role; empty where load and system share all cores.

    Raises:
        UsageError: no core would be left for the system.
    """
    own, available = scenario.load.cores, host_info.core_numbers()
    if own is None:
        return {}
    if own >= len(available):
        raise UsageError(
            f"load.cores: {own} of {len(available)} cores would leave none for the framework; give"
            " fewer or leave it out"
        )
    return {"load": available[-own:], "source": available[:-own], "framework": available[:-own]}


def framework_cores(scenario: Scenario) -> int:
    """Return how many cores of this machine a framework here has."""
    return len(core_sets(scenario).get("framework", ())) or host_info.cores()
