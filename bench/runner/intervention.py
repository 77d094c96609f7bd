"""The test of an explanation's advice: a change of one setting, the rate that it should give, and the rate it gave."""

import re
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.activity_graph.summaries import busy_by_worker
from bench.analysis.advice import Change, named_changes
from bench.analysis.explanation import main_operators
from bench.analysis.intervals import has_bracket, name_intervals
from bench.analysis.prediction import (
    Factor,
    Rates,
    fixed_shares,
    predict_equal_parts,
    predict_longer_batches,
    predict_more_workers,
    predict_rates,
    rates_of,
    spare_factor,
)
from bench.config.scenario import Grid, LatencyTrials, Scenario
from bench.config.site import Site
from bench.errors import UsageError
from bench.model.measurement import Measurement, Result
from bench.plugins import registry
from bench.plugins.interventions import SettingChange, change_setting
from bench.plugins.placement import place
from bench.runner.cell_plan import plan_cell
from bench.runner.core_sets import framework_cores
from bench.runner.explanation import ExplainedTrial
from bench.storage.run_folder import read_results, read_run, read_trials
from bench.system import host_info
from bench.units import Rate, Seconds

MAX_NAME_LENGTH = 80
"""Of a scenario."""


class Intervention(Struct, frozen=True):
    """A change to one cell of a run, with what it should do."""

    change: str
    """as the sentence names it"""
    setting: str
    """what is set, with the value before and the new one"""
    before: Rates
    """the cell's maximum rate in the run"""
    predicted: Rates
    scenario: Scenario
    """that measures the cell with the change; everything else is as in the run"""
    site: Site


def plan_intervention(folder: Path, explained: ExplainedTrial, budget: Seconds) -> Intervention:
    """Return the first change that the sentence of an explained trial names and that a setting makes.

    Args:
        folder: the run folder.
        explained: the trial, of this run.
        budget: of the search with the change.

    Raises:
        UsageError: the cell has no interval of its rate, the sentence names no change, or no setting makes one.
    """
    cell, record = explained.trial.cell, read_run(folder)
    if changed := host_info.find_change(record.facts):
        raise UsageError(f"{folder}: was measured with {changed}; its rates would not be comparable: run it here first")
    results = name_intervals(read_results(folder), calibrated=registry.is_calibrated(record.scenario.search.strategy))
    result = next((one for one in results if one.cell == cell), None)
    before = rates_of(result) if result is not None else None
    if result is None or before is None:
        status = "without a result" if result is None else "a bracket" if has_bracket(result) else result.status
        raise UsageError(f"{cell.name}: is {status} in {folder}; --try needs a measured rate with an interval")
    advice, straggler = explained.explanation.advice, explained.explanation.straggler
    others = [trial.measurement for trial in read_trials(folder, cell)]
    refused = []
    for change in named_changes(advice, straggler):
        try:
            setting, factor = _predict(change, explained, result, (record.scenario, record.site), others)
        except UsageError as reason:
            refused.append(str(reason))
            continue
        scenario = _scenario_of(explained, record.scenario, setting, budget)
        bound = plan_cell(cell, scenario, record.site, framework_cores(scenario)).hard_bound
        predicted = predict_rates(before, factor, *([bound.hz] if bound is not None else []))
        scenario = _start_at(scenario, predicted.estimate)
        return Intervention(change.text, setting.text, before, predicted, scenario, record.site)
    why = "; ".join(refused) or "its sentence names no change that would help"
    raise UsageError(f"{cell.name}: there is nothing to try: {why}")


def _predict(
    change: Change, explained: ExplainedTrial, result: Result, where: tuple[Scenario, Site], others: list[Measurement]
) -> tuple[SettingChange, Factor]:
    """Return the settings that make a change, and the factor of the rate; UsageError if there are none.

    `others` are the cell's measurements: they show for which factor this machine has CPU time.
    """
    scenario, site = where
    participation, measurement = explained.participation, explained.trial.measurement
    if change.lever is None:
        raise UsageError(f"{change.text}: no setting makes it")
    setting = change_setting(change.lever, explained.trial.cell, scenario, site, framework_cores(scenario))
    factor: Factor | None
    spare = spare_factor(measurement, others)
    if change.lever == "batch interval":
        shares = fixed_shares(participation, measurement, result.fixed_share)
        factor = predict_longer_batches(shares, setting.ratio)
        spare = spare_factor(measurement, others, shares, setting.ratio)
    elif change.lever == "workers":
        overloaded = explained.trial.verdict.word == "overloaded"
        factor = predict_more_workers(participation, setting.ratio, overloaded=overloaded)
    else:
        straggler = explained.explanation.straggler or ""
        factor = predict_equal_parts(busy_by_worker(participation), main_operators(participation), straggler)
    if factor is None:
        raise UsageError(f"{change.text}: the fixed part of a batch fills the interval, so that no rate follows")
    remote = place(explained.trial.cell.framework, explained.trial.cell.source, site, framework_cores(scenario))
    return setting, factor if remote.framework_remote else factor.limited(spare)


def _scenario_of(explained: ExplainedTrial, scenario: Scenario, setting: SettingChange, budget: Seconds) -> Scenario:
    """Return the scenario of the run for the cell alone, with the change and a budget."""
    cell = explained.trial.cell
    size = next(one for one in scenario.grid.message_size if int(one) == cell.message_bytes)
    settings = {name: dict(own) for name, own in scenario.settings.items()}
    for plugin, values in setting.values.items():
        settings[plugin] = {**settings.get(plugin, {}), **values}
    tried = "-".join(str(value) for values in setting.values.values() for value in values.values())
    name = re.sub(r"[^A-Za-z0-9._-]+", "", f"{cell.name}-try-{next(iter(next(iter(setting.values.values()))))}-{tried}")
    return replace(
        scenario,
        name=name[:MAX_NAME_LENGTH],
        title=f"{cell.name} of {scenario.name}, with {setting.text}",
        systems=(cell.system,),
        grid=Grid((size,), (Seconds(cell.cpu_seconds),)),
        search=replace(scenario.search, total=None, budget=budget),
        latency=LatencyTrials(),
        settings=settings,
    )


def _start_at(scenario: Scenario, rate: float) -> Scenario:
    """Return the scenario whose search begins at a rate, as far as its limits allow."""
    search = scenario.search
    start = Rate(min(max(rate, float(search.lowest)), float(search.highest)))
    return replace(scenario, search=replace(search, start=start))
