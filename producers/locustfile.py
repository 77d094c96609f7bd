"""Inside Locust: one user that takes orders over a channel and sends them at full speed; only here are locust and gevent known.

Messages are no Locust events one by one: each account of the load is one event, whose length is the bytes that were sent since
the one before. producers.swarm starts it and passes the channel's file number.
"""

import contextlib
from argparse import ArgumentParser
from collections import deque
from typing import cast

import gevent
from locust import TaskSet, User, constant, events, task
from locust.env import Environment

from bench import rooms
from bench.channel import Channel
from bench.errors import HarnessError
from bench.faces import Sender
from bench.load import Pump, drive
from bench.order import Halt, Order, Ready, Sent, Trouble
from producers.swarm import Closing, Opening, Told


def add_channel(parser: ArgumentParser) -> None:
    """Let Locust's command line have a --channel."""
    parser.add_argument("--channel", type=int, required=True, help="file number of the channel to the harness")


class Producer(User):
    """Does what the channel says until it ends; then Locust ends too."""

    wait_time = constant(0)

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        assert environment.parsed_options is not None, "it was started by a command line"
        self._channel: Channel[Told] = Channel.inherited(environment.parsed_options.channel, cast("type[Told]", Told))
        self._told: deque[Told] = deque()
        self._sender: Sender | None = None
        self._source, self._bytes, self._counted = "", 0, 0

    @task
    def serve(self) -> None:
        """Never returns before the channel ends."""
        try:
            while True:
                self._do(self._next())
        except (EOFError, BrokenPipeError):
            self._leave(0)

    def fail(self, reason: str) -> None:
        """Say why the load cannot go on, and end."""
        with contextlib.suppress(OSError):
            self._channel.tell(Trouble(reason))
        self._leave(1)

    def _next(self) -> Told:
        while not self._told:
            self._told.extend(self._channel.hear())
        return self._told.popleft()

    def _do(self, told: Told) -> None:
        match told:
            case Opening(endpoint):
                self._close()
                self._source, self._sender = endpoint.source, rooms.sender(endpoint.source)
                self._sender.open(endpoint)
                self._channel.tell(Ready())
            case Closing():
                self._close()
                self._channel.tell(Ready())
            case Order() as order:
                assert self._sender is not None, "an endpoint is opened before an order is given"
                self._bytes, self._counted = order.message_bytes, 0
                drive(Pump(order, self._sender), self._tell, self._halted, sleep=gevent.sleep)
            case Halt():
                pass  # the order that it was meant for is over

    def _halted(self) -> bool:
        """Whether anything was said since the order began: a halt, or that the sender is to be closed."""
        self._told.extend(self._channel.hear(timeout=0))
        return bool(self._told)

    def _tell(self, sent: Sent) -> None:
        self._channel.tell(sent)
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


events.init_command_line_parser.add_listener(add_channel)  # type: ignore[no-untyped-call]  # Locust's hooks are not typed
events.user_error.add_listener(end_load)  # type: ignore[no-untyped-call]  # as above
