"""Plugin declarations: one frozen record per plugin, given by one entry point.

    entry point group         record                 runs in
    bench.sources             SourcePlugin           the harness; its sender in the load generator's process
    bench.consumers           ConsumerPlugin         any process that reads a source with our own code
    bench.frameworks          FrameworkPlugin        the harness, beside what it starts
    bench.load_generators     LoadGeneratorPlugin    the harness, beside the processes that send
    bench.reports             ReportPlugin           `bench report`; reads the run folder alone
    bench.search              SearchPlugin           the harness; of bench.search.problem
    bench.policies            PolicyPlugin           the harness; of bench.elasticity.policy

The name of a plugin is the name of its entry point. `docs/adding-a-plugin.md` is the checklist.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import Generic, NoReturn, Protocol, TypeVar

from msgspec import Struct

from bench.analysis.bounds import Copies
from bench.config.site import Site
from bench.elasticity.policy_comparison import PolicyComparison
from bench.model.cell import Cell
from bench.plugins.client_lint import ConfigWarning
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Consumer, Endpoint, Framework, LoadGenerator, Sender, Source
from bench.plugins.site_section import Section
from bench.services.python_environments import PythonEnvironment
from bench.simulation.validation_report import ValidationReport
from bench.workload.rate_meter import RateMeter

Settings = TypeVar("Settings", bound=Struct)

BaselineProducer = Callable[[Endpoint, bytes, RateMeter, Path], None]
"""Sends one message over and over until the meter, given the confirmed count, ends it. The path is the download cache.
"""

Discard = Callable[[Endpoint, Event], None]
"""Reads an endpoint and drops every message until the event is set or its process ends."""

Preflight = Callable[[Site, Path], Sequence[str]]
"""(site, download cache) -> what is missing here, one sentence each; a download that will happen counts as missing, as
a PendingDownload."""


FILES_STAY = (
    "Files that it has read stay in the folder while a trial runs, and it lists them again and again. The longer a "
    "stream lasts, the lower is the rate that it sustains."
)
"""The `remark` of a framework that deletes no files."""


def _nothing_missing(_site: Site, _cache: Path) -> Sequence[str]:
    return ()


@dataclass(frozen=True, kw_only=True)
class SourceCapabilities:
    """Properties of a source that the harness plans with."""

    retains_unread: bool = False
    """accepts messages that nobody reads; needed for calibration unless there is a `discard`"""
    keyed: bool = False
    """messages can have keys: the sender has `send_keyed`, and messages of one key keep their order"""
    single_writer: bool = False
    """only one sender at a time can serve it (a port, a pipe)"""
    in_process: bool = False
    """exists only within the harness's process: load generator and framework must run there"""


@dataclass(frozen=True, kw_only=True)
class SourcePlugin(Generic[Settings]):
    """A source: how messages enter a framework."""

    settings: type[Settings]
    open: Callable[[Settings], Source]
    """makes a closed Source from its settings; raises UsageError for settings that contradict each other"""
    sender: Callable[[Endpoint], Sender]
    """connects; raises a HarnessError, leaving nothing open, when it cannot"""
    capabilities: SourceCapabilities = SourceCapabilities()
    site: Section | None = None
    """its part of the site file; a source without one exists on this machine only"""
    preflight: Preflight = _nothing_missing
    prepare: Callable[[Settings, Cell, RunEnvironment], object] | None = None
    """starts what the source keeps between cells, such as a server, as the cell needs it; `open` finds it there. A run
    calls it once before its cells, side by side with those of other plugins, in a thread of its own; what it raises is
    logged only, since `open` tries again"""
    copies: Callable[[Settings, Site], Copies | None] | None = None
    """how often network and disks see each byte, for bounds; None where it cannot be known"""
    disk_copies: float = 0.0
    """bytes on this machine's disk per byte of an unread message, for the estimate of `bench plan`"""
    parts: Callable[[Settings, int], int] | None = None
    """(settings, cores of the framework) -> partitions of a cell, which bound how many tasks read at once; None where a
    source has no partitions"""
    parts_setting: str = ""
    """the setting with their number, which `bench explain --try` changes; empty where it cannot be set"""
    warnings: Callable[[Settings, int, float], Sequence[ConfigWarning]] | None = None
    """(settings, bytes of the largest message, entropy) -> settings that distort a measurement"""
    results_topic: Callable[[Endpoint], AbstractContextManager[Endpoint]] | None = None
    """makes one more topic beside that of an endpoint, for what a framework writes, and removes it in the end; raises a
    PluginError where the broker refuses. None where there are no topics"""
    baselines: Mapping[str, BaselineProducer] = field(default_factory=dict)
    """by name: loops around the source's own client that the load generator is compared with"""
    discard: Discard | None = None
    client_code: Sequence[ModuleType] = ()
    """modules with the sender's code, searched for known mistakes of clients (bench.plugins.client_lint)"""
    packages: Sequence[str] = ()
    """distributions whose versions are recorded with each run"""


@dataclass(frozen=True, kw_only=True)
class ConsumerPlugin:
    """A reader of the source of the same name."""

    open: Callable[[Endpoint, int, int], Consumer]
    """(endpoint, member, members): connects to read this member's share of the endpoint's parts, from their ends: what
    is sent after it returns is not missed. Raises a HarnessError, leaving nothing open, when it cannot"""


@dataclass(frozen=True, kw_only=True)
class FrameworkCapabilities:
    """Properties of a framework that the harness plans with."""

    ordered: bool = True
    """processes the messages of one part of a source in the order in which it reads them"""
    in_process: bool = False
    """reads within the harness's process, and so a source that exists only there"""
    text_only: Sequence[str] = ()
    """sources that it reads as lines of text, though they carry any bytes"""
    records_spans: bool = True
    """runs the common work function, which records what a trace holds of it"""
    plain: bool = False
    """no framework at all, but plain processes: COST is the cores with which another system outdoes one of them"""
    warm_up_s: float | None = None
    """seconds of load that a run spends once on new processes which become faster, such as those of a JVM, for each
    source, before it measures; the search expects that they become faster for longer. 0: new processes are as fast as
    old ones. None: not known; the search expects that they may become faster, and a trial at half the rate comes before
    those of a later visit to a cell"""


@dataclass(frozen=True, kw_only=True)
class FrameworkPlugin(Generic[Settings]):
    """A framework under test."""

    settings: type[Settings]
    open: Callable[[Settings], Framework]
    """makes a Framework from its settings; raises UsageError for settings that contradict each other"""
    capabilities: FrameworkCapabilities = FrameworkCapabilities()
    environment: PythonEnvironment | None = None
    """the Python environment that its processes run in, where it is not ours; `bench install` makes it"""
    readers: Callable[[Settings, int], int] | None = None
    """(settings, cores) -> how many tasks read a source's partitions at once; one for each core when left out"""
    max_addresses: Callable[[Settings, str, Site], int | None] | None = None
    """(settings, source, site) -> how many addresses of a SplitSource, which has one for each sender, it can read; None
    for any number, as when left out"""
    worker_setting: str = ""
    """the setting that says how many workers (processes, tasks) process messages at once, one for each core where a
    scenario leaves it out; `bench advise` counts in them. Empty where their number cannot be set
    """
    interval_setting: str = ""
    """the setting with the batch interval, which `bench explain --try` makes longer; empty for one without batches"""
    not_elastic: str = "the number of its workers is fixed while it runs: advice and restart only"
    """why workers cannot come and go while it runs, in a sentence; empty where what `open` returns is an
    ElasticFramework"""
    elastic_sources: Sequence[str] | None = None
    """sources that it reads while workers come and go; None for all"""
    remark: Callable[[Settings, str], str | None] | None = None
    """(settings, source) -> what a reader of its results there must know, in a sentence; None where that is nothing"""
    site: Section | None = None
    """its part of the site file; a framework without one runs on this machine only"""
    unseen: Callable[[Settings], bool] | None = None
    """(settings) -> whether processes that are not the harness's children do its work: what they use of this machine
    cannot be told from other work. None where all are, or run where its part of the site file says"""
    preflight: Preflight = _nothing_missing
    prepare: Callable[[Settings, Cell, RunEnvironment], object] | None = None
    """starts what the framework keeps between cells, such as a session; as a source's"""
    packages: Sequence[str] = ()
    """distributions whose versions are recorded with each run"""


@dataclass(frozen=True, kw_only=True)
class LoadGeneratorPlugin:
    """A load generator."""

    open: Callable[[Endpoint, RunEnvironment, int], LoadGenerator]
    """opens so many senders at the endpoint; raises a HarnessError, leaving nothing open, when it cannot"""
    in_process: bool = False
    """one thread of the harness: a single worker, not calibrated, and able to reach a source in the process"""
    default: bool = False
    """used where a scenario names none"""
    prepare: Callable[[RunEnvironment, int], object] | None = None
    """starts so many processes, which it keeps between cells; as a source's"""
    join: Callable[[str, int, Callable[[str], None]], NoReturn] | None = None
    """(host:port of a site's `load.listen`, processes, callback for progress): makes this process so many workers"""
    packages: Sequence[str] = ()


class Serve(Protocol):
    """Server of a run's live page."""

    def __call__(self, run: Path, *, host: str, port: int, say: Callable[[str], None]) -> None:
        """Serve the page until the run ends; `say` gets its address."""


@dataclass(frozen=True, kw_only=True)
class ReportPlugin:
    """A report format; each callable is one thing that it can do."""

    write: Callable[[Path], Sequence[Path]] | None = None
    """run folder -> files written into it"""
    kind: str = "map"
    """of the scenarios whose runs it writes files of, or shows side by side"""
    default: bool = False
    """written at the end of every run"""
    export: bool = False
    """for other tools: written by `bench export`"""
    read: Callable[[Sequence[Path], Path, str], Path] | None = None
    """(files of another tool, parent folder, command) -> run folder that can be reported and compared"""
    compare: Callable[[Sequence[Path], Path], Path] | None = None
    """(run folders, parent folder) -> a page that shows them side by side"""
    serve: Serve | None = None
    draw_validation: Callable[[ValidationReport, Path], Path] | None = None
    """(report of `bench certify`, image file) -> the file"""
    draw_policies: Callable[[PolicyComparison, Path], Path] | None = None
    """(policies of `bench advise --load`, image file) -> the file"""
