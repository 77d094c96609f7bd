"""The connector for asyncio code."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import cast

from frameworks.harmonicio.engine.connector.feeder import Feeder, Options
from frameworks.harmonicio.engine.errors import Refused, Unreachable
from frameworks.harmonicio.engine.wire.frame import Buffer

_MAX_WAIT = 0.05


async def readiness(watched: Sequence[tuple[object, bool]], timeout: float, event: asyncio.Event) -> None:
    """Return once one of the sockets (socket, whether it is to be written to) is ready, the event is set, or time is over."""
    loop = asyncio.get_running_loop()
    socks = [(cast("socket.socket", sock).fileno(), write) for sock, write in watched]
    for fileno, write in socks:
        loop.add_reader(fileno, event.set)
        if write:
            loop.add_writer(fileno, event.set)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):  # wait_for of Python 3.11 may swallow a cancellation
                await event.wait()
    finally:
        event.clear()
        for fileno, write in socks:
            loop.remove_reader(fileno)
            if write:
                loop.remove_writer(fileno)


class AsyncConnector:
    """Feeds a stream from coroutines of one loop; between calls a task of its own takes in acknowledgements and redelivers.

    async with AsyncConnector(c_name="images", port=8090) as connector:
        await connector.send(image)
        await connector.flush()
    """

    def __init__(self, *, timeout: float = 30.0, **options: object) -> None:
        self._feeder = Feeder(Options(**options))  # type: ignore[arg-type]  # checked by Options itself
        self._timeout = timeout
        self._event, self._moved = asyncio.Event(), asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._last_acked, self._last_moved = 0, time.monotonic()

    async def __aenter__(self) -> "AsyncConnector":
        self._task = asyncio.create_task(self._keep(), name="harmonicio connector")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.flush()
        finally:
            await self.close()

    @property
    def feeder(self) -> Feeder:
        """The feeder, for its counters."""
        return self._feeder

    async def send(self, message: Buffer) -> None:
        """Send one message; raises Unreachable when there was no credit for it within the timeout."""
        await self.send_many((message,))

    async def send_many(self, messages: Iterable[Buffer]) -> None:
        """Send many; they share frames."""
        waiting, at, since = list(map(bytes, messages)), 0, time.monotonic()
        while True:
            at = self._feeder.offer(waiting, at)
            if at >= len(waiting):
                return
            await self._progress(since)

    async def flush(self) -> None:
        """Wait until everything is acknowledged; raises Unreachable when nothing was for the timeout."""
        since = time.monotonic()
        while self._feeder.unacked:
            await self._progress(since)

    async def close(self) -> None:
        """Give up what is not acknowledged."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Refused):
                await task
        self._feeder.close()

    async def _progress(self, since: float) -> None:
        """Wait until the feeder has made a step; raises Unreachable when for too long nothing was acknowledged, or Refused.

        Whoever waits has waited `since` then; what others ask for meanwhile does not matter.
        """
        if self._feeder.acked != self._last_acked:
            self._last_acked, self._last_moved = self._feeder.acked, time.monotonic()
        deadline = max(since, self._last_moved) + self._timeout
        if time.monotonic() > deadline:
            raise Unreachable(
                f"nothing was acknowledged for {self._timeout:g} s: {self._feeder.pes} PEs can be reached"
            )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline - time.monotonic()), self._moved:
                if self._task is None:
                    raise Unreachable("the connector is not open")
                if self._task.done():
                    self._task.result()  # raises what ended it
                await self._moved.wait()

    async def _keep(self) -> None:
        try:
            while True:
                self._feeder.step()
                await self._tell()
                await readiness(self._feeder.watched(), _MAX_WAIT, self._event)
        finally:
            await self._tell()  # who waits for the next step is to see that there will be none

    async def _tell(self) -> None:
        async with self._moved:
            self._moved.notify_all()
