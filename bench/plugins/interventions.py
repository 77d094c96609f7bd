"""Settings that make a change of a system: more workers, a longer batch interval, equal partitions."""

import math
from collections.abc import Mapping

from msgspec import Struct

from bench.analysis.advice import Lever
from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.measured_deployment import measured_deployment, partitions_for
from bench.plugins.placement import place
from bench.units import seconds_text

LONGER, MORE = 2, 2
"""Factors of a batch interval, and of the number of workers."""


class SettingChange(Struct, frozen=True):
    """New values of settings."""

    values: Mapping[str, Mapping[str, object]]
    """by plugin, then by setting"""
    text: str
    """what is changed, with the value before and the new one"""
    ratio: float
    """new value divided by the one before"""


def change_setting(lever: Lever, cell: Cell, scenario: Scenario, site: Site, cores: int) -> SettingChange:
    """Return the settings that make a change of a cell's system.

    Args:
        lever: what is to be changed.
        cell: the cell.
        scenario: with the settings of now.
        site: of the run.
        cores: cores of this machine that a framework here has.

    Raises:
        UsageError: no setting makes the change, or it would have no effect; the message says why.
    """
    if lever == "workers":
        return _more_workers(cell, scenario, site, cores)
    return _longer_batches(cell, scenario) if lever == "batch interval" else _equal_parts(cell, scenario, site, cores)


def _more_workers(cell: Cell, scenario: Scenario, site: Site, cores: int) -> SettingChange:
    plugin = registry.framework_plugin(cell.framework)
    if not plugin.worker_setting:
        raise UsageError(f"more cores: {cell.framework} has no setting for the number of its workers")
    deployed = measured_deployment(cell.framework, cell.source, scenario, site, cores)
    workers = min(MORE * deployed.workers, deployed.cores)
    if workers <= deployed.workers:
        raise UsageError(f"more cores: {deployed.setting} is {deployed.workers}, and there are {deployed.cores} cores")
    changed: dict[str, Mapping[str, object]] = {cell.framework: {plugin.worker_setting: workers}}
    text = f"{deployed.setting} {deployed.workers} -> {workers}"
    asked, needed = _asked_partitions(cell, scenario), partitions_for(cell.framework, cell.source, scenario, workers)
    if asked is not None and needed is not None and asked < needed:
        setting = registry.source_plugin(cell.source).parts_setting
        changed[cell.source] = {setting: needed}
        text = f"{text}, settings.{cell.source}.{setting} {asked} -> {needed}"
    return SettingChange(changed, text, workers / deployed.workers)


def _longer_batches(cell: Cell, scenario: Scenario) -> SettingChange:
    setting = registry.framework_plugin(cell.framework).interval_setting
    if not setting:
        raise UsageError(f"a longer batch interval: {cell.framework} has no setting for it")
    if scenario.objectives.batches == "grow":
        raise UsageError("a longer batch interval: with objectives.batches: grow batches are as long as they need")
    before = float(registry.make_framework(cell.framework, scenario.settings).batch_interval)
    text = f"settings.{cell.framework}.{setting} {seconds_text(before)} -> {seconds_text(LONGER * before)}"
    return SettingChange({cell.framework: {setting: f"{LONGER * before!r} s"}}, text, LONGER)


def _equal_parts(cell: Cell, scenario: Scenario, site: Site, cores: int) -> SettingChange:
    source, settings = registry.source_plugin(cell.source), scenario.settings
    if source.parts is None or not source.parts_setting:
        raise UsageError(f"equal parts for all: {cell.source} has no setting for the number of its partitions")
    if scenario.load.keys is not None:
        raise UsageError("equal parts for all: load.keys says which partition a message goes to, not a setting")
    available = place(cell.framework, cell.source, site, cores).cores
    plugin = registry.framework_plugin(cell.framework)
    readers = available
    if plugin.readers is not None:
        readers = plugin.readers(registry.settings_of_framework(cell.framework, settings), available)
    before = source.parts(registry.settings_of_source(cell.source, settings), available)
    parts = readers * math.ceil(before / readers)
    if parts == before:
        raise UsageError(f"equal parts for all: the {before} partitions are equal parts for {readers} readers already")
    text = f"settings.{cell.source}.{source.parts_setting} {before} -> {parts}"
    return SettingChange({cell.source: {source.parts_setting: parts}}, text, parts / before)


def _asked_partitions(cell: Cell, scenario: Scenario) -> int | None:
    """Return the partitions that the scenario asks for; None where it leaves them out, or cannot set them."""
    setting = registry.source_plugin(cell.source).parts_setting
    if not setting:
        return None
    asked: int | None = getattr(registry.settings_of_source(cell.source, scenario.settings), setting)
    return asked
