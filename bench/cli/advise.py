"""`bench advise`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bench.cli.inputs import Changes, RunArgument, refuse_options
from bench.cli.output import complain, say
from bench.errors import UsageError
from bench.units import Rate, Seconds, Share, Size, correct_case, rate_text, seconds_text, size_text

if TYPE_CHECKING:
    from bench.elasticity.advice import Advice, Question
    from bench.elasticity.policy_comparison import PolicyComparison
    from bench.model.cell import Cell
    from bench.model.measurement import Result
    from bench.storage.records import RunRecord

EVERY, PAUSE = "60 s", "0 s"
MAX_RATE_HZ, MAX_COST = 1e12, "1 h"
QuantityT = TypeVar("QuantityT", Rate, Size, Seconds, Share)
Value = TypeVar("Value", int, float)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    example = "Example:  bench advise results/quick-20261121T120000Z --rate 50k/s --size 10kB --cost 1ms"
    app.command(epilog=example)(advise)


def advise(
    folder: RunArgument,
    *,
    rate: Annotated[str, typer.Option("--rate", metavar="RATE", help="Messages a second to sustain, such as 50k/s.")],
    size: Annotated[
        str, typer.Option("--size", metavar="SIZE", help="Message size; that of the run when it has only one.")
    ] = "",
    cost: Annotated[
        str, typer.Option("--cost", metavar="TIME", help="CPU cost of a message; that of the run when it has only one.")
    ] = "",
    headroom: Annotated[
        str, typer.Option("--headroom", metavar="SHARE", help="Share of the capacity that stays free at this rate.")
    ] = "20 %",
    load: Annotated[
        Path | None,
        typer.Option(
            "--load", metavar="FILE", help="CSV of times and rates, of which --rate is the highest: simulate policies."
        ),
    ] = None,
    interval: Annotated[
        str, typer.Option("--interval", metavar="TIME", help="With --load: time between two decisions of a policy.")
    ] = EVERY,
    pause: Annotated[
        str, typer.Option("--pause", metavar="TIME", help="With --load: time for which a change stops the system.")
    ] = PAUSE,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="With --load: draw load and workers (.png, .svg).")
    ] = None,
    changes: Changes = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Say how many workers, cores and partitions each system of a run needs for a rate, the cheapest first.

    Beyond what the run measured the answer is a model's, and says so. Where there is no map, a short run of kind
    elasticity will do. With --load it also simulates how the installed scaling policies follow a load. Exit code 4
    when there is advice for no system.
    """
    from bench.cli.advice_table import advice_json, print_advice
    from bench.cli.policy_table import list_rows, print_policies
    from bench.elasticity.advice import cheapest_first
    from bench.storage.run_folder import read_run

    if load is None:
        given = {"--interval": interval != EVERY, "--pause": pause != PAUSE, "--plot": plot, "--set": changes}
        refuse_options(given, "policies are simulated with --load only; give both or none")
    record = read_run(folder)
    live = record.scenario.elasticity is not None
    results, cores = [] if live else _read_results(folder, record), _own_cores(folder, record)
    question = _ask(record.scenario.cells() if live else results, rate, size=size, cost=cost, headroom=headroom)
    by_system = {name: [each for each in results if each.system == name] for name in {r.system for r in results}}
    found = cheapest_first(
        _advise_from_workers(question, folder, record, cores)
        if live
        else [_advise_system(question, own, record, cores) for own in by_system.values()]
    )
    compared = None
    if load is not None:
        every, stop = float(_read("--interval", interval, Seconds)), float(_read("--pause", pause, Seconds))
        compared = _follow(found, question, load, times=(every, stop), changes=changes or [])
    if as_json:
        say(advice_json(question, found, list_rows(compared) if compared else ()))
    else:
        print_advice(question, found)
        if compared:
            print_policies(compared)
    if compared and plot is not None:
        complain(f"drawn: {_draw(compared, plot)}")
    raise typer.Exit(0 if any(not each.reason for each in found) else 4)


def _follow(
    advice: "Sequence[Advice]", question: "Question", trace: Path, *, times: tuple[float, float], changes: Sequence[str]
) -> "PolicyComparison":
    """Return the installed policies on a load; `times` are the interval and the pause in seconds."""
    from bench.cli.policy_table import make_policies
    from bench.config.load_profile import read_trace
    from bench.elasticity.policy_comparison import compare_policies, plan_following

    policies = make_policies(changes)
    following = plan_following(advice, question, read_trace(trace, "--load"), interval=times[0], pause=times[1])
    return compare_policies(following, policies)


def _draw(compared: "PolicyComparison", file: Path) -> Path:
    """Draw the policies; return the file."""
    from bench.plugins.registry import find_report_ability

    missing = "--plot: no installed report format draws it; pip install 'stream-bench[report]'"
    return find_report_ability(lambda plugin: plugin.draw_policies, missing)(compared, file)


def _read_results(folder: Path, record: "RunRecord") -> "list[Result]":
    """Return the results of a run; UsageError if it has none."""
    from bench.analysis.intervals import name_intervals
    from bench.plugins.registry import is_calibrated
    from bench.storage.run_folder import read_results

    results = read_results(folder)
    if not results:
        raise UsageError(f"{folder}: has no result yet; go on with: bench run --resume {folder}")
    return name_intervals(results, calibrated=is_calibrated(record.scenario.search.strategy))


def _own_cores(folder: Path, record: "RunRecord") -> int:
    """Return the cores of the run's machine without those that only its load generator had; UsageError if unknown."""
    cores = record.facts.get("cores")
    if not isinstance(cores, int):
        raise UsageError(f"{folder}: run.json does not say how many cores the machine had; advice needs a run of ours")
    return max(1, cores - (record.scenario.load.cores or 0))


def _read(option: str, text: str, kind: type[QuantityT]) -> QuantityT:
    """Return the quantity that an option holds; UsageError if it is none."""
    try:
        return kind.read(text)
    except ValueError as allowed:
        near = "".join(f"; did you mean {each!r}?" for each in correct_case(kind, text))
        raise UsageError(f"{option} {text}: found {text!r}; allowed: {allowed}{near}") from None


def _take_only(option: str, values: Mapping[Value, str]) -> Value:
    """Return the only value that a run has, of values with their texts; UsageError if it has several."""
    if len(values) != 1:
        known = ", ".join(values[each] for each in sorted(values))
        raise UsageError(f"{option}: found nothing, and the run has {known}; allowed: one of them, or any other")
    return next(iter(values))


def _ask(cells: "Sequence[Result] | Sequence[Cell]", rate: str, *, size: str, cost: str, headroom: str) -> "Question":
    """Return the question that the options ask; UsageError for one that is wrong."""
    from bench.elasticity.advice import Question
    from bench.model.message_sizes import MAX_MESSAGE_SIZE

    sizes = {each.message_bytes: size_text(each.message_bytes) for each in cells}
    costs = {each.cpu_seconds: seconds_text(each.cpu_seconds) for each in cells}
    question = Question(
        float(_read("--rate", rate, Rate)),
        int(_read("--size", size, Size)) if size else _take_only("--size", sizes),
        float(_read("--cost", cost, Seconds)) if cost else _take_only("--cost", costs),
        float(_read("--headroom", headroom, Share)),
    )
    if question.message_bytes < 1:
        raise UsageError(f"--size {size}: found no byte; allowed: {Size.allowed}")
    limits = {
        f"--rate {rate}": (question.rate_hz, MAX_RATE_HZ, rate_text(MAX_RATE_HZ)),
        f"--size {size}": (question.message_bytes, float(Size.read(MAX_MESSAGE_SIZE)), MAX_MESSAGE_SIZE),
        f"--cost {cost}": (question.cpu_seconds, float(Seconds.read(MAX_COST)), MAX_COST),
    }
    for option, (value, most, text) in limits.items():
        if value > most:
            raise UsageError(f"{option}: is too much; allowed: at most {text}")
    if question.headroom >= 1:
        raise UsageError(f"--headroom {headroom}: leaves nothing for messages; allowed: a share below 100 %")
    return question


def _advise_system(question: "Question", results: "Sequence[Result]", record: "RunRecord", cores: int) -> "Advice":
    """Return the advice for the system that results are of, or why there is none if its plugins are not here."""
    from msgspec.structs import replace

    from bench.elasticity.advice import Advice, advise
    from bench.plugins.measured_deployment import measured_deployment, partitions_for

    one, scenario = results[0], record.scenario
    try:
        deployed = measured_deployment(one.framework, one.source, scenario, record.site, cores)
        found = advise(question, results, deployed)
        workers = found.workers.enough or found.workers.least
        parts = partitions_for(one.framework, one.source, scenario, workers) if workers else None
    except UsageError as reason:
        return Advice(system=one.system, reason=str(reason))
    return replace(found, partitions=parts)


def _advise_from_workers(question: "Question", folder: Path, record: "RunRecord", cores: int) -> "list[Advice]":
    """Return the advice for each system of a run of kind elasticity; UsageError if no policy has an interval yet."""
    from msgspec.structs import replace

    from bench.elasticity.advice import Advice
    from bench.elasticity.live_advice import CountedWork, advise_from_workers
    from bench.plugins.measured_deployment import measured_deployment, partitions_for
    from bench.runner.elasticity import read_policy_runs

    scenario, runs, found = record.scenario, read_policy_runs(folder), list[Advice]()
    throttled = scenario.elasticity is not None and float(scenario.elasticity.duty) < 1
    if not any(run.decisions for run in runs):
        raise UsageError(f"{folder}: has no interval of a policy yet; go on with: bench run --resume {folder}")
    for cell in scenario.cells():
        own = [run for run in runs if run.system == cell.system]
        decisions = [decision for run in own for decision in run.decisions]
        refused = [run.end.reason for run in own if run.end is not None and run.is_unsupported]
        if refused and not decisions:
            found.append(Advice(system=cell.system, reason=f"unsupported: {refused[0]}"))
            continue
        try:
            deployed = measured_deployment(cell.framework, cell.source, scenario, record.site, cores)
            one = replace(deployed, workers=1, cores=1)
            known = CountedWork(cell.system, one, cell.message_bytes, cell.cpu_seconds, throttled, decisions)
            advice = advise_from_workers(question, known)
            workers = advice.workers.enough
            parts = partitions_for(cell.framework, cell.source, scenario, workers) if workers else None
            found.append(replace(advice, partitions=parts))
        except UsageError as reason:
            found.append(Advice(system=cell.system, reason=str(reason)))
    return found
