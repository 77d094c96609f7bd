"""Inside Locust: users that take specs and send them at full speed. Only this module imports locust and gevent.

A message is no Locust event of its own: each progress report is one event, whose length is the bytes that were sent
since the one before. producers.load.locust starts one process with a channel; or a master with a channel and workers,
which get their specs from it, and give their progress to it, as Locust's custom messages.
"""

import contextlib
import time
from argparse import ArgumentParser
from collections import deque
from functools import partial
from typing import Any, Protocol, cast

import gevent
import msgspec
from gevent.event import Event
from locust import TaskSet, User, constant, events, runners, task
from locust.env import Environment
from locust.runners import STATE_MISSING, MasterRunner, WorkerRunner

from bench.errors import HarnessError
from bench.plugins import registry
from bench.plugins.protocols import Sender
from bench.system import clock
from bench.system.ipc import Channel, Failure, Ready
from bench.workload.load_spec import Cancel, LoadSpec, SendProgress
from bench.workload.open_loop import OpenLoopSender, run_load
from producers.load.locust import Closing, Command, Opening, Reply

MASTER_TIMEOUT_S = 15
"""A worker on another host does not notice that its master was killed: after so long without a heartbeat it ends
(Locust: 60 s, as long as the next run waits for it)."""
COMMAND_MESSAGE, REPLY_MESSAGE = "stream-bench-command", "stream-bench-reply"
"""Locust's custom messages, from master to workers and back; each carries one JSON text."""


class CommandConnection(Protocol):
    """A connection to whoever sends the commands."""

    def receive(self, timeout: float | None = None) -> list[Command]:
        """Return the commands that came within `timeout` seconds."""

    def send(self, message: msgspec.Struct) -> None:
        """Send a reply."""


class MasterConnection:
    """A worker's connection: Locust's own to its master."""

    def __init__(self, runner: WorkerRunner) -> None:
        self._runner, self._commands, self._arrived = runner, deque[Command](), Event()
        self.member = 0
        """number of this one among the run's workers"""

    def take(self, environment: Environment, msg: Any, **_: object) -> None:  # noqa: ARG002  Locust gives these names
        """Take in a command that Locust delivers."""
        self.member = msg.data["member"]
        self._commands.append(msgspec.json.decode(msg.data["json"], type=cast("type[Command]", Command)))
        self._arrived.set()

    def receive(self, timeout: float | None = None) -> list[Command]:
        """Return the commands that came within `timeout` seconds."""
        if timeout != 0:
            self._arrived.wait(timeout)
        self._arrived.clear()
        commands = list(self._commands)
        self._commands.clear()
        return commands

    def send(self, message: msgspec.Struct) -> None:
        """Send a reply."""
        self._runner.send_message(REPLY_MESSAGE, {"json": msgspec.json.encode(message).decode()})


CONNECTIONS: dict[Environment, MasterConnection] = {}


def add_channel(parser: ArgumentParser) -> None:
    """Add --channel to Locust's command line."""
    parser.add_argument("--channel", type=int, default=-1, help="file number of the channel to the harness")


def connect_worker(environment: Environment, **_: object) -> None:
    """Register a worker's listener before its master can send anything.

    Its wait for heartbeats begins here: Locust's begins with the first, which a master that ends now never sends.
    """
    if isinstance(environment.runner, WorkerRunner):
        environment.runner.last_heartbeat_timestamp = time.time()
        CONNECTIONS[environment] = MasterConnection(environment.runner)
        environment.runner.register_message(COMMAND_MESSAGE, CONNECTIONS[environment].take)


def relay_commands(environment: Environment, **_: object) -> None:
    """Relay, in a master that has all its workers, commands from the channel and replies of the workers."""
    if isinstance(environment.runner, MasterRunner) and REPLY_MESSAGE not in environment.runner.custom_messages:
        channel = _channel(environment)
        environment.runner.register_message(REPLY_MESSAGE, partial(_pass_on, channel))
        gevent.spawn(_relay, environment.runner, channel)
        gevent.spawn(_watch, environment.runner, channel)


_REPLY: Any = Reply


def _pass_on(channel: Channel[Command], msg: Any, **_: object) -> None:
    channel.send(msgspec.json.decode(msg.data["json"], type=_REPLY))


def _relay(runner: MasterRunner, channel: Channel[Command]) -> None:
    """Relay commands to the workers.

    Each worker gets its number here: Locust's own numbers also count workers of an earlier run that still send
    messages.
    """
    members = sorted(runner.clients)
    try:
        while True:
            for command in channel.receive():
                text = msgspec.json.encode(command).decode()
                for member, client in enumerate(members):
                    runner.send_message(COMMAND_MESSAGE, {"json": text, "member": member}, client)
    except (EOFError, OSError):
        runner.quit()


def _watch(runner: MasterRunner, channel: Channel[Command]) -> None:
    """Report workers of other hosts that are gone.

    They are no children of the harness, and only their master notices (after 3 s).
    """
    began_with = set(runner.clients)
    while not (
        gone := [
            name for name in began_with if name not in runner.clients or runner.clients[name].state == STATE_MISSING
        ]
    ):
        gevent.sleep(0.5)
    with contextlib.suppress(OSError):
        channel.send(Failure(f"{len(gone)} of {len(began_with)} workers of the load are gone"))
    runner.quit()


def _channel(environment: Environment) -> Channel[Command]:
    assert environment.parsed_options is not None, "it was started by a command line"
    return Channel.inherited(environment.parsed_options.channel, cast("type[Command]", Command))


class _ClosingError(Exception):
    """The sender of the load under way is to be closed."""


class Producer(User):
    """A Locust user that executes commands until its connection ends; then Locust ends too."""

    wait_time = constant(0)

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._connection: CommandConnection = CONNECTIONS.get(environment) or _channel(environment)
        self._commands: deque[Command] = deque()
        self._sender: Sender | None = None
        self._source, self._bytes, self._counted = "", 0, 0

    @task
    def serve(self) -> None:
        """Execute commands; never returns before the connection ends."""
        try:
            while True:
                self._do(self._next())
        except (EOFError, BrokenPipeError):
            self._quit(0)

    def fail(self, reason: str) -> None:
        """Send why the load cannot go on, and end."""
        with contextlib.suppress(OSError):
            self._connection.send(Failure(reason))
        self._quit(1)

    def _next(self) -> Command:
        while not self._commands:
            self._commands.extend(self._connection.receive())
        return self._commands.popleft()

    def _do(self, command: Command) -> None:
        match command:
            case Opening(endpoint):
                self._close()
                self._source, self._sender = endpoint.source, registry.open_sender(endpoint)
                self._connection.send(Ready())
            case Closing():
                self._close()
                self._connection.send(Ready())
            case LoadSpec() as spec:
                assert self._sender is not None, "Opening comes before LoadSpec"
                self._bytes, self._counted = spec.message_bytes, 0
                sender = OpenLoopSender(self._share(spec), self._sender)
                with contextlib.suppress(_ClosingError):
                    run_load(
                        sender,
                        self._report,
                        self._is_cancelled,
                        clock=clock.make_reader(spec.clock),
                        sleep=gevent.sleep,
                    )
            case Cancel():
                pass  # the spec that it was meant for is over

    def _share(self, spec: LoadSpec) -> LoadSpec:
        """Return a worker's share of a spec; all of it where there is only one."""
        return spec.for_worker(self._connection.member) if isinstance(self._connection, MasterConnection) else spec

    def _is_cancelled(self) -> bool:
        """Return whether a command came since the spec began, to cancel it.

        Raises:
            _ClosingError: the sender is to be closed: nobody waits for what is not confirmed yet.
        """
        self._commands.extend(self._connection.receive(timeout=0))
        if any(isinstance(command, Closing) for command in self._commands):
            raise _ClosingError
        return bool(self._commands)

    def _report(self, sent: SendProgress) -> None:
        self._connection.send(sent)
        new, self._counted = sent.accepted - self._counted, sent.accepted
        if new:
            self.environment.events.request.fire(
                request_type=self._source,
                name="messages",
                response_time=sent.late * 1000,
                response_length=new * self._bytes,
                exception=None,
                context={"messages": new},
            )

    def _close(self) -> None:
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()

    def _quit(self, exit_code: int) -> None:
        self._close()
        self.environment.process_exit_code = exit_code
        gevent.spawn(self.environment.runner.quit)  # which ends the greenlet that we are in


def end_load(user_instance: TaskSet, exception: Exception, **_: object) -> None:
    """End the load after any error; Locust would log it and start the task again."""
    reason = str(exception) if isinstance(exception, HarnessError) else f"{type(exception).__name__}: {exception}"
    assert isinstance(user_instance.user, Producer)
    user_instance.user.fail(reason)


runners.MASTER_HEARTBEAT_TIMEOUT = MASTER_TIMEOUT_S
events.init_command_line_parser.add_listener(add_channel)  # type: ignore[no-untyped-call]  # Locust's hooks are not typed
events.init.add_listener(connect_worker)  # type: ignore[no-untyped-call]  # as above
events.test_start.add_listener(relay_commands)  # type: ignore[no-untyped-call]  # as above
events.user_error.add_listener(end_load)  # type: ignore[no-untyped-call]  # as above
