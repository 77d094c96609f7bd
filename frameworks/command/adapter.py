"""A program under test: started with the address of the source, counted by the headers that it sends back.

The protocol is one page, docs/any-program.md.
"""

import ipaddress
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Literal

from msgspec import Meta, Struct

from bench.config.address import Address, HostPort
from bench.errors import HarnessError, NotReadyError, PluginError, UsageError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.placement import place
from bench.plugins.protocols import Endpoint
from bench.plugins.reporting_children import poll_reports
from bench.services.maven_jars import download_jars, read_pins
from bench.services.ports import LOOPBACK
from bench.system.child import Child
from bench.system.ipc import Failure
from bench.units import Seconds
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import MessageProcessor
from frameworks.command.endpoint_file import ReportTarget, describe, variables, write_endpoint_file
from frameworks.command.report_reader import Connected, Listening, ReadReports

EXAMPLE = "{python} -m frameworks.command.example"
JARS, NO_PROGRAM = "{jars}", "none"
READER_TIMEOUT_S = 30.0
_POLL_INTERVAL_S = 0.05


class CommandSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A program, and the way in which it reports what it has processed."""

    run: str = EXAMPLE
    """the command line, without a shell; {python} is the harness's own Python, {jars} the class path of `jars`; `none`
    for a program that runs already; an example in Python when left out"""
    needs: tuple[str, ...] = ()
    """programs that must be on the PATH besides the first word of `run`"""
    jars: str | None = None
    """a lock file of jars from Maven, downloaded once; it lists one set, named as the file is"""
    reports: Literal["tcp", "topic"] = "tcp"
    """where the headers of processed messages go: a TCP port of the harness, or a topic of the source's broker"""
    ready: str | None = None
    """text in the program's output that says that it reads; when left out, its connection to the port, or else the
    first messages, which must come back before a cell is measured"""
    ready_timeout: Seconds = Seconds(60)
    listen: HostPort | None = None
    """host:port of this machine for the reports of a program on another host; a free port of loopback when left out"""
    file: str | None = None
    """the JSON file that tells the program what to read; in the run's data when left out, which `run: none` cannot"""
    cores: Annotated[int, Meta(ge=1)] | None = None
    """that the program is told to use; the framework's when left out"""
    daemon: bool = False
    """whether processes do the work that `run` does not start itself, such as a container's; `run: none` means so"""

    @property
    def is_seen(self) -> bool:
        """True if the processes that do the work are children of the harness."""
        return not (self.daemon or self.runs_already)

    @property
    def runs_already(self) -> bool:
        """True if no program is started."""
        return self.run.strip() == NO_PROGRAM


class CommandFramework:
    """A program for each cell, or one that runs already."""

    batch_interval = 0.0

    def __init__(self, settings: CommandSettings) -> None:
        self._settings, self._command = settings, _split(settings)

    def unsupported_reason(self, cell: Cell, source: str) -> str | None:  # noqa: ARG002  any size and cost will do
        """Return why it cannot process the cell from that source, in a sentence; None when it can."""
        if source not in registry.names("sources"):
            return f"there is no source {source}; there are: {', '.join(registry.names('sources'))}"
        if self._settings.reports == "topic" and registry.source_plugin(source).results_topic is None:
            return f"settings.command.reports: topic, but {source} has no topics for results; use tcp"
        if self._command and shutil.which(self._command[0]) is None:
            return f"settings.command.run: found no program {self._command[0]!r}; install it, or give its path"
        if missing := [name for name in self._settings.needs if shutil.which(name) is None]:
            return f"settings.command.needs: found no program {missing[0]!r}; install it"
        try:
            _read_lock_file(self._settings)
        except HarnessError as problem:
            return str(problem)
        return None

    def open(self, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> "RunningProgram":
        """Start the program; return once it reads, as far as that can be told.

        Raises:
            ProcessDiedError: the program ended.
            NotReadyError: it does not say within `ready_timeout` that it reads.
            PluginError: the broker refuses the topic for its reports.
            UsageError: the JSON file cannot be written.
            ServiceError: it or its jars cannot be had, or nobody can listen for its reports.
        """
        settings = self._settings
        jars = fetch_jars(settings, env)
        program = RunningProgram(settings)
        with ExitStack() as opening:
            opening.callback(program.close)
            target = program.receive_reports(endpoint, work, env)
            path = Path(settings.file) if settings.file else env.data / f"command-{cell.name}.json"
            cores = settings.cores or place(cell.framework, cell.source, env.site, env.cores).cores
            record = describe(cell, endpoint, target, cores)
            write_endpoint_file(path, record)
            if self._command:
                words = [word.replace(JARS, f"{jars}/*") for word in self._command]
                program.start(words, variables(record, path.absolute()), env)
            program.wait_until_ready()
            opening.pop_all()  # it stays open
        return program


def fetch_jars(settings: CommandSettings, env: RunEnvironment) -> Path | None:
    """Return the folder of a program's jars, which are downloaded unless they are there; None where it names none.

    Raises:
        UsageError: the lock file cannot be used, or PySpark or Java is missing.
        ServiceError: a jar cannot be had, or is not the one that was pinned.
    """
    lock = _read_lock_file(settings)
    return download_jars(lock.stem, env.cache, env.note, lock=lock) if lock is not None else None


def _read_lock_file(settings: CommandSettings) -> Path | None:
    """Return the path of the lock file of a program's jars. Raises UsageError where it cannot be used."""
    if settings.jars is None:
        return None
    lock = Path(settings.jars)
    try:
        read_pins(lock.stem, lock)
    except (OSError, ValueError, TypeError) as problem:
        raise UsageError(f"settings.command.jars: {lock} cannot be read: {problem}") from problem
    return lock


class RunningProgram:
    """A program that reads an endpoint, and the process that counts its reports."""

    def __init__(self, settings: CommandSettings) -> None:
        self._settings = settings
        self._children: list[Child] = []
        """the process that counts, then the program, where it is started here"""
        self._open = ExitStack()

    def receive_reports(self, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> ReportTarget:
        """Start the process that counts what is reported; return where reports go."""
        results = self._open.enter_context(_results_topic(endpoint)) if self._settings.reports == "topic" else None
        self._open.callback(self._stop)
        token = token_hex(16)
        command = [sys.executable, "-m", "frameworks.command.report_reader"]
        received = ProcessingReport | Listening | Connected | Failure
        reader = env.supervisor.start(command, name="report-reader", role="framework", received=received)
        self._children.append(reader)
        reader.inbox.send(ReadReports(work, token, self._settings.listen or f"{LOOPBACK}:0", results))
        address = reader.wait_reply(Listening, READER_TIMEOUT_S).address
        address = self._settings.listen or address  # as written: its name here may be one of loopback
        return ReportTarget(address, token) if results is None else ReportTarget(topic=results.name)

    def start(self, command: list[str], environment: Mapping[str, str], env: RunEnvironment) -> None:
        """Start the program itself."""
        self._children.append(env.supervisor.start(command, name="command", role="framework", env=environment))

    def wait_until_ready(self) -> None:
        """Return once the program has said that it reads: by its output, or by its connection."""
        text = self._settings.ready
        if text is None and self._settings.reports == "topic":
            return  # the first messages will show it
        deadline = time.monotonic() + float(self._settings.ready_timeout)
        reader, program = self._children[0], self._children[-1]
        while time.monotonic() < deadline:
            lives = program.alive()  # first: what it wrote last is still read
            connected = any(isinstance(one, Connected) for one in reader.receive(_POLL_INTERVAL_S))
            if connected if text is None else text in program.log.read_text(errors="replace"):
                return
            if not lives:
                raise program.exit_error()
        awaited = "has not connected to the port for its reports" if text is None else f"has not written {text!r}"
        raise NotReadyError(f"the program {awaited} within {self._settings.ready_timeout:g} s", program.log)

    def poll(self) -> list[ProcessingReport]:
        """Return what was processed since the last call.

        Raises:
            ProcessDiedError: the program, or the process that counts, ended.
        """
        return poll_reports(self._children[:1], self._children[1:])

    def close(self) -> None:
        """Stop; idempotent."""
        self._open.close()

    def _stop(self) -> None:
        while self._children:
            self._children.pop().stop()


def _results_topic(endpoint: Endpoint) -> AbstractContextManager[Endpoint]:
    """Return the topic for reports, which exists during its block."""
    make = registry.source_plugin(endpoint.source).results_topic
    if make is None:
        raise PluginError("command", "open", f"{endpoint.source} has no topics for results")
    return make(endpoint)


def _is_any_address(host: str) -> bool:
    """Return True for 0.0.0.0 and ::, at which one can listen, and to which nobody can connect."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False  # a name


def _split(settings: CommandSettings) -> list[str]:
    """Return the words of a command line; none for a program that runs already. Raises UsageError where it has none."""
    try:
        words = shlex.split(settings.run)
    except ValueError as problem:
        raise UsageError(f"settings.command.run: {problem}: {settings.run}") from problem
    if not words:
        raise UsageError("settings.command.run: give a command line, or `none` for a program that runs already")
    if JARS in settings.run and settings.jars is None:
        raise UsageError(f"settings.command.jars: {JARS} in the command line needs a lock file that lists them")
    if settings.listen is not None and _is_any_address(Address.parse(settings.listen).host):
        raise UsageError(f"settings.command.listen: no program can connect to {settings.listen}; name one address")
    if not settings.runs_already:
        return [word.replace("{python}", sys.executable) for word in words]
    if settings.file is None:
        raise UsageError("settings.command.file: a program that runs already waits for this file; give its path")
    if settings.ready is not None:
        raise UsageError("settings.command.ready: the output of a program that runs already is not seen; leave it out")
    return []
