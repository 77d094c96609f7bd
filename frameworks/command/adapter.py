"""A program under test: started with the address of the source, counted by the headers that it sends back.

The protocol is one page, docs/any-program.md.
"""

import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from secrets import token_hex
from typing import Literal

import msgspec
from msgspec import Struct

from bench.errors import NotReadyError, PluginError, UsageError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint
from bench.services.ports import LOOPBACK
from bench.system.child import Child
from bench.system.ipc import Failure
from bench.units import Seconds
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import MessageProcessor
from frameworks.command.report_reader import Connected, Listening, Reading

EXAMPLE = "{python} -m frameworks.command.example"
NO_PROGRAM = "none"
READER_TIMEOUT_S = 30.0
_POLL_INTERVAL_S = 0.05


class CommandSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A program, and the way in which it reports what it has processed."""

    run: str = EXAMPLE
    """the command line, without a shell; {python} is the harness's own Python; `none` for a program that runs already;
    a small reader in Python, as an example, when left out"""
    reports: Literal["tcp", "topic"] = "tcp"
    """where the headers of processed messages go: a TCP port of the harness, or a topic of the source's broker"""
    ready: str | None = None
    """text in the program's output that says that it reads; when left out, its connection to the port, or else the
    first messages, which must come back before a cell is measured"""
    ready_timeout: Seconds = Seconds(60)
    listen: str | None = None
    """host:port for the reports of a program on another host; a free port of loopback when left out"""


class CommandFramework:
    """A program for each cell, or one that runs already."""

    batch_interval = 0.0

    def __init__(self, settings: CommandSettings) -> None:
        self._settings, self._command = settings, _split(settings.run)
        if settings.ready is not None and not self._command:
            raise UsageError("settings.command.ready: the output of a program that runs already is not seen; leave it out")

    def unsupported_reason(self, cell: Cell, source: str) -> str | None:  # noqa: ARG002  any size and cost will do
        """Return why it cannot process the cell from that source, in a sentence; None when it can."""
        if source not in registry.names("sources"):
            return f"there is no source {source}; there are: {', '.join(registry.names('sources'))}"
        if self._settings.reports == "topic" and registry.source_plugin(source).results_topic is None:
            return f"settings.command.reports: topic, but {source} has no topics for results; use tcp"
        if self._command and shutil.which(self._command[0]) is None:
            return f"settings.command.run: found no program {self._command[0]!r}"
        return None

    def open(self, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> "RunningProgram":
        """Start the program; return once it reads, as far as that can be told.

        Raises:
            ProcessDiedError: the program ended.
            NotReadyError: it does not say within `ready_timeout` that it reads.
            PluginError: the broker refuses the topic for its reports.
            ServiceError: it cannot be started, or nobody can listen for its reports.
        """
        return RunningProgram(self._settings, self._command, cell, endpoint, work, env)


class RunningProgram:
    """A program that reads an endpoint, and the process that counts its reports."""

    def __init__(
        self,
        settings: CommandSettings,
        command: list[str],
        cell: Cell,
        endpoint: Endpoint,
        work: MessageProcessor,
        env: RunEnvironment,
    ) -> None:
        self._children: list[Child] = []
        self._settings = settings
        with ExitStack() as opening:
            results = self._results(endpoint, opening)
            opening.callback(self._stop)
            token, listening = self._start_reader(work, results, env)
            variables = _describe(cell, endpoint, env, listening, token, results)
            if command:
                self._children.append(env.supervisor.start(command, name="command", role="framework", env=variables))
            self._wait_until_ready(waits_for_connection=results is None and bool(command))
            self._open = opening.pop_all()

    def poll(self) -> list[ProcessingReport]:
        """Return what was processed since the last call.

        Raises:
            ProcessDiedError: the program, or the process that counts, ended.
        """
        alive = [child.alive() for child in self._children]  # first: what was reported last is still heard
        reports = [one for one in self._children[0].receive() if isinstance(one, ProcessingReport)]
        for child, lives in zip(self._children, alive, strict=True):
            if not lives and not reports:
                raise child.exit_error()
        return reports

    def close(self) -> None:
        """Stop; idempotent."""
        self._open.close()

    def _results(self, endpoint: Endpoint, opening: ExitStack) -> Endpoint | None:
        """Make the topic for the reports, if they go to one."""
        if self._settings.reports == "tcp":
            return None
        make = registry.source_plugin(endpoint.source).results_topic
        if make is None:
            raise PluginError("command", "open", f"{endpoint.source} has no topics for results")
        return opening.enter_context(make(endpoint))

    def _start_reader(self, work: MessageProcessor, results: Endpoint | None, env: RunEnvironment) -> tuple[str, str]:
        """Start the process that counts; return the token that it expects, and the address at which it listens."""
        token = token_hex(16)
        command = [sys.executable, "-m", "frameworks.command.report_reader"]
        received = ProcessingReport | Listening | Connected | Failure
        reader = env.supervisor.start(command, name="report-reader", role="framework", received=received)
        self._children.append(reader)
        reader.inbox.send(Reading(work, token, self._settings.listen or f"{LOOPBACK}:0", results))
        return token, reader.wait_reply(Listening, READER_TIMEOUT_S).address

    def _wait_until_ready(self, *, waits_for_connection: bool) -> None:
        text = self._settings.ready
        if text is None and not waits_for_connection:
            return
        deadline = time.monotonic() + float(self._settings.ready_timeout)
        reader, program = self._children[0], self._children[-1]
        while time.monotonic() < deadline:
            lives = program.alive()
            connected = any(isinstance(one, Connected) for one in reader.receive(_POLL_INTERVAL_S))
            if connected if text is None else text in program.log.read_text(errors="replace"):
                return
            if not lives:
                raise program.exit_error()
        awaited = "has not connected to the port for its reports" if text is None else f"has not written {text!r}"
        raise NotReadyError(f"the program {awaited} within {self._settings.ready_timeout:g} s", program.log)

    def _stop(self) -> None:
        while self._children:
            self._children.pop().stop()


def _split(run: str) -> list[str]:
    """Return the words of a command line; none for a program that runs already."""
    try:
        words = shlex.split(run)
    except ValueError as problem:
        raise UsageError(f"settings.command.run: {problem}: {run}") from problem
    if not words:
        raise UsageError("settings.command.run: give a command line, or `none` for a program that runs already")
    return [] if words == [NO_PROGRAM] else [word.replace("{python}", sys.executable) for word in words]


def _describe(
    cell: Cell, endpoint: Endpoint, env: RunEnvironment, listening: str, token: str, results: Endpoint | None
) -> Mapping[str, str]:
    """Write the JSON file that tells a program what to read; return the environment with its main values."""
    to_topic = results is not None
    values = {
        "source": endpoint.source,
        "address": endpoint.address,
        "topic": endpoint.name,
        "partitions": endpoint.parts,
        "client": endpoint.client,
        "message_bytes": cell.message_bytes,
        "cpu_seconds": cell.cpu_seconds,
        "cores": env.cores,
        "report_address": "" if to_topic else listening,
        "report_token": "" if to_topic else token,
        "report_topic": results.name if results is not None else "",
    }
    path = env.data / f"command-{cell.name}.json"
    path.touch(mode=0o600)  # the token lets in who reports
    path.write_bytes(msgspec.json.format(msgspec.json.encode(values)) + b"\n")
    plain = {key: str(value) for key, value in values.items() if isinstance(value, str | int | float)}
    return {f"STREAM_BENCH_{key.upper()}": value for key, value in (plain | {"endpoint": str(path)}).items()}
