"""The command `bench`: reads what the person gives, calls the house, says what came of it; alone prints and exits."""

import errno
import logging
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from bench.errors import HarnessError, InterruptedRunError, UsageError

if TYPE_CHECKING:  # everything else is imported by the verb that needs it: `bench --help` stays fast
    from bench.config.scenario import Scenario
    from bench.config.site import Site
    from bench.storage.run_folder import RunFolder

app = typer.Typer(
    name="bench",
    help="Find the highest message frequency that a stream processing framework sustains.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="A scenario file, such as scenarios/quick.yaml.")
]
SiteFile = Annotated[
    Path | None, typer.Option("--site", metavar="FILE", help="A site file; this machine when left out.")
]
Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change one value; may be repeated.")
]
Results = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where run folders are made.")]
DEFAULT_RESULTS, ONE_RUN = Path("results"), "html,pdf"


@app.command(epilog="Example:  bench run scenarios/quick.yaml --set grid.message_size=1kB,1MB")
def run(  # one argument for each option
    scenario: ScenarioFile,
    *,
    site: SiteFile = None,
    out: Results = DEFAULT_RESULTS,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="DIR", help="Go on with the run in this folder.")
    ] = None,
    changes: Changes = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say only how it ended.")] = False,
    web: Annotated[bool, typer.Option("--web", help="Open Locust's own page while it runs, on loopback.")] = False,
) -> None:
    """Find the top rate of every cell of a scenario, and report it."""
    from bench.cli import terminal
    from bench.plugins import registry
    from bench.runner import live_status
    from bench.runner.run import Places
    from bench.runner.run import run as run_all
    from bench.storage.run_folder import RunFolder

    chosen, where = _read(scenario, site, changes)
    _warn(chosen)
    store = _resumed(resume, chosen, where) if resume else RunFolder.fresh(out, chosen.name)
    command = shlex.join(["bench", *sys.argv[1:]])
    _log_to(store.folder / "harness.log")
    try:
        with (
            terminal.watcher(len(chosen.cells()), store.folder, quiet=quiet) as screen,
            live_status.live_status(store.folder, screen) as watcher,
        ):
            results = run_all(chosen, where, store, watcher, places=Places(_cache(), _registry(), command, web=web))
    except KeyboardInterrupt:
        raise InterruptedRunError(f"interrupted, everything is stopped; go on with --resume {store.folder}") from None
    files = [
        file
        for name in ("html", "pdf")
        if name in registry.names("reports")
        for file in registry.report(name).write(store.folder)
    ]
    for file in files:
        _say(str(file))
    failed = sum(result.status == "failed" for result in results)
    _say(f"{len(results)} cells, {failed} failed: {store.folder}")
    raise typer.Exit(4 if failed else 0)


@app.command(epilog="Example:  bench check scenarios/*.yaml")
def check(
    scenarios: Annotated[list[Path], typer.Argument(metavar="SCENARIO...", help="Scenario files.")],
    *,
    changes: Changes = None,
) -> None:
    """Say whether scenario files are right; every mistake is one line."""
    wrong = []
    for path in scenarios:
        try:
            chosen, _ = _read(path, None, changes)
            _warn(chosen)
            _say(f"{path}: {len(chosen.cells())} cells of {len(chosen.systems)} systems")
        except UsageError as mistake:
            wrong.append(str(mistake))
    if wrong:
        raise UsageError("\n".join(wrong))


@app.command(epilog="Example:  bench plan scenarios/frameworks.yaml")
def plan(
    scenario: ScenarioFile, *, site: SiteFile = None, out: Results = DEFAULT_RESULTS, changes: Changes = None
) -> None:
    """Say what a scenario will take: cells, time, disk, and what is missing."""
    from bench.cli.run_plan import plan_of
    from bench.units import seconds_text

    chosen, where = _read(scenario, site, changes)
    found = plan_of(chosen, where, out, _cache())
    _say(f"cells    {len(found.cells)} ({len(chosen.systems)} systems), {len(found.unsupported)} of them unsupported")
    _say(f"time     about {seconds_text(found.seconds)}, at most {seconds_text(found.longest)}")
    _say(f"disk     about {found.disk / 1e9:.1f} GB at a time, {found.free / 1e9:.0f} GB free")
    for name, why in found.unsupported.items():
        _say(f"cannot   {name}: {why}")
    for gap in found.missing or ["nothing"]:
        _say(f"missing  {gap}")


@app.command(epilog="Example:  bench rooms")
def rooms() -> None:
    """List the installed rooms: sources, frameworks, loads, strategies, reports."""
    from bench.plugins.registry import KINDS, names

    for kind in KINDS:
        _say(f"{kind:12} {', '.join(names(kind))}")


@app.command(epilog="Example:  bench report results/quick-20261121T120000Z --format html,png")
def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="The folder of a run; several are put side by side.")
    ],
    *,
    formats: Annotated[
        str, typer.Option("--format", help="Which files, separated by commas; see bench rooms.")
    ] = ONE_RUN,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where a page of several runs is put.")
    ] = DEFAULT_RESULTS,
) -> None:
    """Draw the maps of a run from its folder alone; of several runs, a page that holds them against each other."""
    from bench.plugins.registry import report as writer
    from bench.plugins.registry import view

    if len(folders) > 1:
        if formats not in (ONE_RUN, "html"):
            raise UsageError(f"--format {formats}: several runs are put side by side in one page (html) only")
        _say(str(view("compare").write(folders, out)))
        return
    for module in [writer(name.strip()) for name in formats.split(",")]:
        for file in module.write(folders[0]):
            _say(str(file))


@app.command(epilog="Example:  bench watch results/quick-20261121T120000Z")
def watch(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run that goes on.")],
    *,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on; by default only this machine can look.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; a free one when left out.")] = 0,
) -> None:
    """Show a run while it goes on, as a live page that can only be read; ends with the run."""
    from bench.plugins.registry import view

    try:
        view("watch").serve(folder, host=host, port=port, say=lambda text: print(text, flush=True))
    except KeyboardInterrupt:
        raise InterruptedRunError("stopped watching; the run goes on") from None


@app.command(epilog="Example:  bench export results/quick-20261121T120000Z --format csv,parquet,omb")
def export(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    *,
    formats: Annotated[
        str, typer.Option("--format", help="Which: csv, parquet, omb (OpenMessaging Benchmark).")
    ] = "csv,parquet,omb",
) -> None:
    """Write a run's cells and trials as tables for other tools, into its folder."""
    report([folder], formats=formats)


@app.command("import", epilog="Example:  bench import kafka-10kB.json pulsar-10kB.json")
def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Result files of the OpenMessaging Benchmark.")
    ],
    *,
    out: Results = DEFAULT_RESULTS,
) -> None:
    """Read other tools' results as a run that can be reported and compared, and never gone on with."""
    from bench.plugins.registry import report as room

    _say(str(room("omb").read(files, out, shlex.join(["bench", *sys.argv[1:]]))))


@app.command(epilog="Example:  bench calibrate kafka tcp --against bare --sizes 100B,1MB")
def calibrate(  # one argument for each option
    names: Annotated[
        list[str], typer.Argument(metavar="SYSTEM|SOURCE...", help="Such as kafka or spark/tcp; message: the codec.")
    ],
    *,
    against: Annotated[
        str, typer.Option(help="Rivals: bare, constant, kafka-producer-perf-test ...; separated by commas.")
    ] = "",
    sizes: Annotated[str, typer.Option(help="Message sizes, separated by commas.")] = "100B,1kB,10kB,100kB,1MB,10MB",
    runs: Annotated[int, typer.Option(min=1, max=99, help="Repetitions; the median counts.")] = 3,
    seconds: Annotated[float, typer.Option(min=0.5, max=600, help="Of one repetition.")] = 1.5,
    offered: Annotated[
        bool, typer.Option("--offered", help="How truly rates are kept, from 0.1/s to 0.9 of the ceiling.")
    ] = False,
    site: SiteFile = None,
    out: Results = DEFAULT_RESULTS,
    changes: Changes = None,
) -> None:
    """Measure how fast the load itself is, against sources whose messages nobody keeps."""
    from bench.cli import calibration_table

    folder = calibration_table.folder_for(out)
    baselines = [name.strip() for name in against.split(",") if name]
    asked = calibration_table.Asked(names, baselines, sizes, runs, seconds, changes or [], offered=offered)
    for line in calibration_table.lines(asked, folder, site, _cache(), _registry()):
        _say(line)
    _say(f"saved    {folder}")


@app.command(
    epilog="Example:  bench compare results/quick-20261121T120000Z results/quick-20261122T120000Z --fail-if slower"
)
def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="The folder of a run.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The folder of another run of the same cells.")],
    *,
    fail_if: Annotated[
        str, typer.Option("--fail-if", metavar="WORD", help="Exit code 4 if a cell of B is: slower, faster.")
    ] = "",
) -> None:
    """Say for each cell whether B is faster or slower than A; at most 1 in 20 maps of equals shows any change."""
    from bench.analysis import comparison
    from bench.storage.run_folder import read_results, read_run

    if fail_if not in ("", "slower", "faster"):
        raise UsageError(f"--fail-if {fail_if}: found no such verdict; allowed: slower, faster")
    for folder in (first, second):
        read_run(folder)
    results = [read_results(folder) for folder in (first, second)]
    rates = [{(r.system, r.message_bytes, r.cpu_seconds): comparison.claim_text(r) for r in found} for found in results]
    compared = comparison.compare(results[0], results[1])
    for each in compared:
        key = (each.cell.system, each.cell.message_bytes, each.cell.cpu_seconds)
        a, b = (known.get(key, "") for known in rates)
        _say(
            f"{each.word:12} {each.cell.name:32} {a:>10} -> {b:>10}  {comparison.ratio_text(each)}{each.why and '  ' + each.why}"
        )
    counts = {
        word: sum(each.word == word for each in compared) for word in ("faster", "slower", "undecided", "not compared")
    }
    _say(", ".join(f"{count} {word}" for word, count in counts.items()))
    raise typer.Exit(4 if counts.get(fail_if) else 0)


@app.command(epilog="Example:  bench certify --strategy two-counter --seeds 200 --plot certificate.png")
def certify(  # one argument for each option
    *,
    strategy: Annotated[
        str, typer.Option("--strategy", metavar="NAME", help="An installed one, or module:Class.")
    ] = "two-counter",
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, max=100_000, help="Runs of each case; gates are meant for 200.")
    ] = 200,
    first: Annotated[int, typer.Option("--first-seed", min=0, help="The first seed.")] = 0,
    scenario: Annotated[
        str, typer.Option("--scenario", metavar="TEXT", help="Only cases whose names contain this.")
    ] = "",
    jobs: Annotated[int, typer.Option("--jobs", min=0, max=256, help="Processes; 0 for one a core.")] = 0,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw error, coverage and time (.png, .svg).")
    ] = None,
) -> None:
    """Put a search strategy to the test on simulated systems with known ceilings; exit code 4 when a gate fails."""
    from functools import partial

    from bench.cli import validation_table
    from bench.plugins import registry
    from bench.simulation import validation_report
    from bench.system import host_info, process_pool

    sys.path.insert(0, str(Path.cwd()))  # where a strategy of one's own may lie
    maker = registry.maker(strategy)
    many = validation_report.Seeds(seeds, seeds, max(1, seeds // 2), first=first)
    todo = validation_report.list_tasks(many, only=scenario, mutations=strategy == "two-counter")
    if not todo:
        names = ", ".join(validation_report.case_names())
        raise UsageError(f"--scenario {scenario}: no case has that in its name; there are: {names}")
    answers = process_pool.answers(
        partial(validation_report.run_task, strategy=maker), todo, min(len(todo), jobs or host_info.cores())
    )
    report = validation_report.build_report(strategy, many, validation_table.track_progress(answers, len(todo)))
    validation_table.print_report(report)
    if plot is not None:
        _say(str(registry.plot("certificate").write(report, plot)))
    raise typer.Exit(0 if all(criterion.passed for criterion in report.criteria) else 4)


@app.command(epilog="Example:  bench doctor --site site.yaml")
def doctor(*, site: SiteFile = None, out: Results = DEFAULT_RESULTS) -> None:
    """Look whether this machine and the site have what a run needs."""
    from bench.cli.diagnosis import findings
    from bench.config.site import Site
    from bench.config.validation import read_site
    from bench.errors import SiteError

    wrong = 0
    for finding in findings(read_site(site) if site else Site(), out, _cache(), _registry()):
        wrong += not finding.good
        _say(f"{'ok  ' if finding.good else 'BAD '} {finding.what}")
    if wrong:
        raise SiteError(f"{wrong} of these must be put right first")


@app.command(epilog="Example:  bench worker 10.0.0.5:5557")
def worker(
    master: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="What the site file of the runs calls load.listen.")
    ],
) -> None:
    """Be a worker of the load on this host, for one run after another that a site file sends here."""
    from bench.config.validation import read_address
    from bench.plugins.registry import load_worker

    try:
        load_worker("swarm")(read_address(master), lambda text: print(text, flush=True))
    except KeyboardInterrupt:
        raise InterruptedRunError("no worker of the load any more") from None


@app.command(epilog="Example:  bench clean")
def clean(*, out: Results = DEFAULT_RESULTS) -> None:
    """End what a killed run left running, and delete the data that it left lying."""
    from bench.plugins.environment import delete_data
    from bench.storage.run_folder import locked
    from bench.system.supervisor import end_orphans

    for ended in end_orphans(_registry()):
        _say(f"ended    {ended}")
    for data in sorted(out.glob("*/data")):
        lock = locked(data.parent)
        if lock is None:
            continue
        with lock:
            delete_data(data)
        _say(f"deleted  {data}")
    _say("nothing is left running")


def main() -> NoReturn:
    """Run the command line; the exit code says how it ended (see bench.errors)."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = app(standalone_mode=False)
    except HarnessError as problem:
        _complain(str(problem))
        sys.exit(problem.exit_code)
    except typer.Exit as ending:
        sys.exit(ending.exit_code)
    except Exception as problem:
        if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
            _complain(
                f"{problem.strerror}: {problem.filename or 'nothing more can be written'}; make room, then do it again"
            )
            sys.exit(3)
        if type(problem).__module__.startswith(("click", "typer")) and hasattr(problem, "format_message"):
            _complain(f"{problem.format_message()}; see bench --help")
            sys.exit(2)
        raise
    sys.exit(code or 0)


def _read(path: Path, site: Path | None, changes: list[str] | None) -> "tuple[Scenario, Site]":
    """The scenario and the site, checked against the installed rooms."""
    from bench.config.site import Site
    from bench.config.validation import changed, placed, read_site, scenario_of
    from bench.config.yaml_document import read_document
    from bench.plugins.registry import check as check_rooms

    document = changed(read_document(path), changes or [])
    chosen = scenario_of(document)
    check_rooms(document, chosen)
    where = read_site(site) if site else Site()
    return placed(chosen, where), where


def _warn(chosen: "Scenario") -> None:
    """Tell of hazards; UsageError where one must be put right first."""
    from bench.plugins.registry import config_warnings

    found = config_warnings(chosen)
    for hazard in found:
        if not hazard.refused:
            _complain(f"warning: {hazard.text}")
    if refused := [hazard.text for hazard in found if hazard.refused]:
        raise UsageError("\n".join(refused))


def _resumed(folder: Path, chosen: "Scenario", where: "Site") -> "RunFolder":
    """The store of an earlier run; it must have been of the same scenario, on the same site and machine."""
    from bench.storage.run_folder import RunFolder, read_run
    from bench.system import host_info

    record = read_run(folder)
    if "imported" in record.facts:
        raise UsageError(f"{folder}: was imported from another tool's results; it can be reported, not gone on with")
    if record.scenario != chosen:
        raise UsageError(
            f"{folder}: is a run of another scenario or with other settings; give the ones in its run.json"
        )
    if record.site != where:
        raise UsageError(
            f"{folder}: is a run on the site {record.site.name!r} as it was then; give that site's file with --site"
        )
    if changed := host_info.changed(record.facts):
        raise UsageError(
            f"{folder}: was begun with {changed}; its cells would not be comparable: begin a run of its own"
        )
    return RunFolder(folder)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stream-bench"


def _registry() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "stream-bench" / "children"


def _log_to(path: Path) -> None:
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("kafka").setLevel(logging.WARNING)  # its story is not the run's


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _say(text: str) -> None:
    print(text)


def _complain(text: str) -> None:
    print(text, file=sys.stderr)
