"""A deployment that cannot be opened anew is tried a second time, since a process may have been about to end."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace
from simulated_runs import SCENARIO

from bench.config.scenario import Grid, LoadSettings
from bench.config.site import Site
from bench.errors import NotReadyError, PluginError, ProcessDiedError
from bench.model.message_sizes import MessageSize
from bench.plugins.environment import RunEnvironment
from bench.runner import deployment as module
from bench.runner.cell_plan import plan_cell
from bench.runner.deployment import Deployment, deployed
from bench.system.supervisor import Supervisor

SMALL = replace(
    SCENARIO,
    systems=("capacity/memory",),
    grid=Grid((MessageSize(100),), SCENARIO.grid.cpu_cost[:1]),
    load=LoadSettings(by="inline"),
)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """A real deployment of capacity/memory."""
    supervisor = Supervisor(tmp_path / "children", tmp_path / "logs")
    plan = plan_cell(SMALL.cells()[0], SMALL, Site(), 1)
    with (
        RunEnvironment(Site(), supervisor, tmp_path / "data", tmp_path / "cache", cores=1) as env,
        deployed(plan, env) as opened,
    ):
        yield opened


def test_a_process_that_dies_while_a_cell_is_deployed_is_started_again(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cell says nothing of what somebody else ended; any other error is the cell's."""
    open_parts, problems = module._open_parts, [ProcessDiedError("locust ended with exit code -9")]

    def open_later(*arguments: object) -> tuple[ExitStack, object]:
        if problems:
            raise problems.pop()
        return open_parts(*arguments)

    monkeypatch.setattr(module, "_open_parts", open_later)
    with deployed(deployment.plan, deployment.env) as again:
        assert again.framework is not deployment.framework
    problems.append(NotReadyError("it is not ready"))
    with pytest.raises(NotReadyError), deployed(deployment.plan, deployment.env):
        pass


@pytest.mark.parametrize("failures", [1, 2])
def test_a_failed_redeployment_is_tried_once_more(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    """The second failure is that of the cell."""
    open_parts, failed, before = module._open_parts, 0, deployment.framework

    def open_later(*arguments: object) -> tuple[ExitStack, object]:
        nonlocal failed
        if failed < failures:
            failed += 1
            raise PluginError("capacity", "open", "its process was about to end")
        return open_parts(*arguments)

    monkeypatch.setattr(module, "_open_parts", open_later)
    if failures == 1:
        deployment.redeploy()
        assert deployment.framework is not before
    else:
        with pytest.raises(PluginError, match="about to end"):
            deployment.redeploy()
    assert failed == failures
