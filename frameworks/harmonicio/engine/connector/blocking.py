"""The connector for blocking code."""

import select
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import cast

from frameworks.harmonicio.engine.connector.feeder import Feeder, Options
from frameworks.harmonicio.engine.errors import Unreachable
from frameworks.harmonicio.engine.wire.frame import Buffer

_MAX_WAIT, _UNCONNECTED_WAIT = 0.05, 0.01


class Connector:
    """Feeds a stream. Thread-safe it is not; use one for each thread.

        with Connector(c_name="images", port=8090) as connector:
            connector.send(image)
            connector.flush()

    `send` returns once the message is on its way or waits for others within `linger`; `flush` once everything is acknowledged.
    """

    def __init__(self, *, timeout: float = 30.0, **options: object) -> None:
        self._options = Options(**options)  # type: ignore[arg-type]  # checked by Options itself
        self._timeout, self._feeder = timeout, Feeder(self._options)
        self._small: list[bytes] = []
        self._small_bytes, self._oldest = 0, 0.0

    def __enter__(self) -> "Connector":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()

    @property
    def feeder(self) -> Feeder:
        """The feeder, for its counters."""
        return self._feeder

    def send(self, message: Buffer) -> None:
        """Send one message; raises Unreachable when it could not be handed on within the timeout."""
        self._small.append(bytes(message))
        self._small_bytes += len(message)
        now = time.monotonic()
        if len(self._small) == 1:
            self._oldest = now
        options = self._options
        if now >= self._oldest + options.linger or self._small_bytes >= options.batch_bytes:
            self._push()

    def send_many(self, messages: Iterable[Buffer]) -> None:
        """Send many; they share frames. What can be changed (a bytearray) is not to be until this returns."""
        self._push()
        self._hand_on(messages if isinstance(messages, list | tuple) else list(messages))

    def flush(self) -> None:
        """Wait until everything is acknowledged; raises Unreachable when nothing was for the timeout."""
        self._push()
        self._until(lambda: self._feeder.unacked == 0)

    def close(self) -> None:
        """Give up what is not acknowledged; idempotent."""
        self._feeder.close()

    def _push(self) -> None:
        if self._small:
            waiting, self._small, self._small_bytes = self._small, [], 0
            self._hand_on(waiting)

    def _hand_on(self, messages: Sequence[Buffer]) -> None:
        self._feeder.step()
        rest = _Rest(messages, self._feeder)
        if not rest.gone():
            self._until(rest.gone)

    def _until(self, done: Callable[[], bool]) -> None:
        feeder = self._feeder
        progress, deadline = (feeder.taken, feeder.acked), time.monotonic() + self._timeout
        while not done():
            watched = feeder.watched()
            ready(watched, _MAX_WAIT if watched else _UNCONNECTED_WAIT)
            feeder.step()
            if (feeder.taken, feeder.acked) != progress:
                progress, deadline = (feeder.taken, feeder.acked), time.monotonic() + self._timeout
            if time.monotonic() > deadline:
                where = f"the master at {self._options.host}:{self._options.port}"
                state = f"{feeder.pes} PEs can be reached, {feeder.unacked} messages are unacknowledged"
                why = "" if feeder.connected else f" ({feeder.problem})"
                raise Unreachable(f"nothing was taken for {self._timeout:g} s; {where}{why}: {state}")


def ready(watched: Sequence[tuple[object, bool]], seconds: float) -> None:
    """Return once one of these sockets (Feeder.watched) is ready, or time is over."""
    if not watched:
        time.sleep(seconds)
        return
    poll = select.poll()
    for sock, write in watched:
        poll.register(cast("socket.socket", sock), select.POLLIN | (select.POLLOUT if write else 0))
    poll.poll(seconds * 1000)


class _Rest:
    """Messages that wait for credit."""

    def __init__(self, messages: Sequence[Buffer], feeder: Feeder) -> None:
        self._messages, self._at, self._feeder = messages, 0, feeder

    def gone(self) -> bool:
        self._at = self._feeder.offer(self._messages, self._at)
        return self._at >= len(self._messages)
