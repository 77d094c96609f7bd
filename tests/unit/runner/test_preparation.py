"""Services that outlive a cell start side by side before the first one; a cell that needs one raises its error."""

from dataclasses import replace
from threading import Barrier

import pytest
from msgspec.structs import replace as replace_cell

from bench.config.site import Site
from bench.config.validation import parse_scenario
from bench.config.yaml_document import read_document
from bench.errors import ServiceError
from bench.runner import preparation
from bench.runner.cell_plan import CellPlan, plan_cell
from bench.runner.preparation import prepare_services


@pytest.fixture
def plan(request: pytest.FixtureRequest) -> CellPlan:
    """The plan of the smoke scenario's first cell."""
    scenario = parse_scenario(read_document(request.config.rootpath / "scenarios" / "smoke.yaml"))
    return plan_cell(scenario.cells()[0], scenario, Site(), 1)


def test_source_and_framework_are_prepared_at_a_time(plan):
    """Each waits here until the other one has begun."""
    met = Barrier(2, timeout=10)
    plan = replace(
        plan,
        source=replace(plan.source, prepare=lambda *_: met.wait()),
        framework=replace(plan.framework, prepare=lambda *_: met.wait()),
    )
    prepare_services([plan], None)
    assert not met.broken


def test_each_system_is_prepared_once(plan):
    """The first cell of a system that can be measured prepares it."""
    calls = []
    source = replace(plan.source, prepare=lambda _settings, cell, _env: calls.append(cell))
    unsupported = replace(plan, source=source, unsupported_reason="it cannot")
    prepare_services([unsupported, replace(plan, source=source), replace(plan, source=source)], None)
    assert calls == [plan.cell]


def test_a_failed_preparation_stops_nothing(plan, caplog):
    """Its reason is in the log; the cell that needs the service will raise it."""

    def fail(*_):
        raise ServiceError("no server")

    prepare_services([replace(plan, source=replace(plan.source, prepare=fail))], None)
    assert "no server" in caplog.text


@pytest.mark.parametrize(("size", "used"), [(1000, False), (1_000_000, True)])
def test_memory_is_used_once_before_large_messages(plan, monkeypatch, size, used):
    """The host of a virtual machine lends it then, and not while a cell is measured."""
    calls = []
    monkeypatch.setattr(preparation, "use_free_memory", lambda: calls.append("used"))
    bare = replace(
        plan, source=replace(plan.source, prepare=None), framework=replace(plan.framework, prepare=None),
        cell=replace_cell(plan.cell, message_bytes=size), load_generator=replace(plan.load_generator, prepare=None),
    )  # fmt: skip
    prepare_services([bare], None)
    assert bool(calls) is used
