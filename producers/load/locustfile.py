"""Inside Locust: users that take orders and send them at full speed; only here are locust and gevent known.

Messages are no Locust events one by one: each account of the load is one event, whose length is the bytes that were sent since
the one before. producers.load.locust starts one process with a channel; or a master with a channel and workers, which get their orders
from it, and give their accounts to it, as Locust's custom messages.
"""

import contextlib
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

MASTER_SECONDS = 15
"""A worker on another host does not hear of a master that was killed: after so long without its heartbeat it ends (Locust: 60 s, as
long as the next run waits for it)."""
ORDER, ACCOUNT = "stream-bench-order", "stream-bench-account"
"""Locust's custom messages, from master to workers and back; each carries one JSON text."""


class Line(Protocol):
    """To whoever gives the orders."""

    def receive(self, timeout: float | None = None) -> list[Command]: ...

    def send(self, message: msgspec.Struct) -> None: ...


class MasterLine:
    """A worker's line: Locust's connection to its master."""

    def __init__(self, runner: WorkerRunner) -> None:
        self._runner, self._told, self._came = runner, deque[Command](), Event()
        self.member = 0
        """which of the run's workers this one is"""

    def take(self, environment: Environment, msg: Any, **_: object) -> None:  # noqa: ARG002  Locust gives these names
        """An order that Locust brings."""
        self.member = msg.data["member"]
        self._told.append(msgspec.json.decode(msg.data["json"], type=cast("type[Command]", Command)))
        self._came.set()

    def receive(self, timeout: float | None = None) -> list[Command]:
        if timeout != 0:
            self._came.wait(timeout)
        self._came.clear()
        told = list(self._told)
        self._told.clear()
        return told

    def send(self, message: msgspec.Struct) -> None:
        self._runner.send_message(ACCOUNT, {"json": msgspec.json.encode(message).decode()})


LINES: dict[Environment, MasterLine] = {}


def add_channel(parser: ArgumentParser) -> None:
    """Let Locust's command line have a --channel."""
    parser.add_argument("--channel", type=int, default=-1, help="file number of the channel to the harness")


def connect_worker(environment: Environment, **_: object) -> None:
    """A worker listens to its master before there is anything to hear."""
    if isinstance(environment.runner, WorkerRunner):
        LINES[environment] = MasterLine(environment.runner)
        environment.runner.register_message(ORDER, LINES[environment].take)


def relay_orders(environment: Environment, **_: object) -> None:
    """A master that has all its workers passes on what the channel says, and what they say."""
    if isinstance(environment.runner, MasterRunner) and ACCOUNT not in environment.runner.custom_messages:
        channel = _channel(environment)
        environment.runner.register_message(ACCOUNT, partial(_pass_on, channel))
        gevent.spawn(_relay, environment.runner, channel)
        gevent.spawn(_watch, environment.runner, channel)


_HEARD: Any = Reply


def _pass_on(channel: Channel[Command], msg: Any, **_: object) -> None:
    channel.send(msgspec.json.decode(msg.data["json"], type=_HEARD))


def _relay(runner: MasterRunner, channel: Channel[Command]) -> None:
    """Each worker is told its number here: Locust's own count one of an earlier run, too, that still says something."""
    members = sorted(runner.clients)
    try:
        while True:
            for told in channel.receive():
                text = msgspec.json.encode(told).decode()
                for member, client in enumerate(members):
                    runner.send_message(ORDER, {"json": text, "member": member}, client)
    except (EOFError, OSError):
        runner.quit()


def _watch(runner: MasterRunner, channel: Channel[Command]) -> None:
    """Workers of other hosts are no children of the harness: that one is gone, only their master notices (after 3 s)."""
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


class Producer(User):
    """Does what it is told until its line ends; then Locust ends too."""

    wait_time = constant(0)

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._line: Line = LINES.get(environment) or _channel(environment)
        self._told: deque[Command] = deque()
        self._sender: Sender | None = None
        self._source, self._bytes, self._counted = "", 0, 0

    @task
    def serve(self) -> None:
        """Never returns before the line ends."""
        try:
            while True:
                self._do(self._next())
        except (EOFError, BrokenPipeError):
            self._leave(0)

    def fail(self, reason: str) -> None:
        """Say why the load cannot go on, and end."""
        with contextlib.suppress(OSError):
            self._line.send(Failure(reason))
        self._leave(1)

    def _next(self) -> Command:
        while not self._told:
            self._told.extend(self._line.receive())
        return self._told.popleft()

    def _do(self, told: Command) -> None:
        match told:
            case Opening(endpoint):
                self._close()
                self._source, self._sender = endpoint.source, registry.sender(endpoint.source)
                self._sender.open(endpoint)
                self._line.send(Ready())
            case Closing():
                self._close()
                self._line.send(Ready())
            case LoadSpec() as spec:
                assert self._sender is not None, "an endpoint is opened before an order is given"
                self._bytes, self._counted = spec.message_bytes, 0
                pump = OpenLoopSender(self._share(spec), self._sender)
                run_load(pump, self._tell, self._halted, clock=clock.make_reader(spec.clock), sleep=gevent.sleep)
            case Cancel():
                pass  # the order that it was meant for is over

    def _share(self, spec: LoadSpec) -> LoadSpec:
        """A worker's part of an order; all of it where there is but one."""
        return spec.share(self._line.member) if isinstance(self._line, MasterLine) else spec

    def _halted(self) -> bool:
        """Whether anything was said since the order began: a halt, or that the sender is to be closed."""
        self._told.extend(self._line.receive(timeout=0))
        return bool(self._told)

    def _tell(self, sent: SendProgress) -> None:
        self._line.send(sent)
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

    def _leave(self, exit_code: int) -> None:
        self._close()
        self.environment.process_exit_code = exit_code
        gevent.spawn(self.environment.runner.quit)  # which ends the greenlet that we are in


def end_load(user_instance: TaskSet, exception: Exception, **_: object) -> None:
    """Any error ends the load; Locust would log it and start the task again."""
    reason = str(exception) if isinstance(exception, HarnessError) else f"{type(exception).__name__}: {exception}"
    assert isinstance(user_instance.user, Producer)
    user_instance.user.fail(reason)


runners.MASTER_HEARTBEAT_TIMEOUT = MASTER_SECONDS
events.init_command_line_parser.add_listener(add_channel)  # type: ignore[no-untyped-call]  # Locust's hooks are not typed
events.init.add_listener(connect_worker)  # type: ignore[no-untyped-call]  # as above
events.test_start.add_listener(relay_orders)  # type: ignore[no-untyped-call]  # as above
events.user_error.add_listener(end_load)  # type: ignore[no-untyped-call]  # as above
