"""The connector for asyncio code."""

import asyncio
import contextlib
import time
from collections.abc import Iterable, Sequence
from types import TracebackType

from frameworks.harmonicio.engine.connector.feeder import Feeder
from frameworks.harmonicio.engine.connector.options import Options
from frameworks.harmonicio.engine.errors import RefusedError, UnreachableError
from frameworks.harmonicio.engine.wire.frame import Buffer, as_buffers
from frameworks.harmonicio.engine.wire.tls_socket import StreamSocket

_MAX_WAIT_S = 0.05


async def wait_for_sockets_async(
    sockets: Sequence[tuple[StreamSocket, bool]], timeout_s: float, event: asyncio.Event
) -> None:
    """Return once one of the sockets is ready, the event is set, or after the timeout; the event is cleared.

    Args:
        sockets: (socket, whether to wait for it being writable, too).
        timeout_s: seconds.
        event: ends the wait when it is set.
    """
    loop = asyncio.get_running_loop()
    descriptors = [(sock.fileno(), write) for sock, write in sockets]
    for descriptor, write in descriptors:
        loop.add_reader(descriptor, event.set)
        if write:
            loop.add_writer(descriptor, event.set)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):  # wait_for of Python 3.11 may swallow a cancellation
                await event.wait()
    finally:
        event.clear()
        for descriptor, write in descriptors:
            loop.remove_reader(descriptor)
            if write:
                loop.remove_writer(descriptor)


class AsyncConnector:
    """Feeds a stream from coroutines of one loop; a background task receives acknowledgements and redelivers.

    async with AsyncConnector(c_name="images", port=8090) as connector:
        await connector.send(image)
        await connector.flush()

    Args:
        timeout: seconds without progress after which a call raises UnreachableError.
        options: as of Options.
    """

    def __init__(self, *, timeout: float = 30.0, **options: object) -> None:
        self._feeder = Feeder(Options(**options))  # type: ignore[arg-type]  # checked by Options itself
        self._timeout = timeout
        self._event, self._stepped = asyncio.Event(), asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._last_acked, self._last_progress = 0, time.monotonic()

    async def __aenter__(self) -> "AsyncConnector":
        self._task = asyncio.create_task(self._run(), name="harmonicio connector")
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
        """Return the feeder, for its counters."""
        return self._feeder

    async def send(self, message: Buffer) -> None:
        """Send one message; raises UnreachableError when there was no credit for it within the timeout."""
        await self.send_many((message,))

    async def send_many(self, messages: Iterable[Buffer]) -> None:
        """Send messages, which share frames; raises UnreachableError after the timeout without progress."""
        waiting, at, since = list(map(bytes, as_buffers(messages))), 0, time.monotonic()
        while True:
            at = self._feeder.offer(waiting, at)
            if at >= len(waiting):
                return
            await self._wait_for_step(since)

    async def flush(self) -> None:
        """Wait until everything is acknowledged; raises UnreachableError after the timeout without progress."""
        since = time.monotonic()
        while self._feeder.unacked:
            await self._wait_for_step(since)

    async def close(self) -> None:
        """Close the connector and give up what is not acknowledged."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, RefusedError):
                await task
        self._feeder.close()

    async def _wait_for_step(self, since: float) -> None:
        """Wait until the feeder has made a step.

        The timeout of a caller begins at `since`, or at the last acknowledgement; what others request does not
        extend it. Raises UnreachableError after the timeout, or the RefusedError of the master.
        """
        if self._feeder.acked != self._last_acked:
            self._last_acked, self._last_progress = self._feeder.acked, time.monotonic()
        deadline = max(since, self._last_progress) + self._timeout
        if time.monotonic() > deadline:
            raise UnreachableError(
                f"nothing was acknowledged for {self._timeout:g} s: {self._feeder.pes} PEs can be reached"
            )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline - time.monotonic()), self._stepped:
                if self._task is None:
                    raise UnreachableError("the connector is not open")
                if self._task.done():
                    self._task.result()  # raises the error that ended the task
                await self._stepped.wait()

    async def _run(self) -> None:
        try:
            while True:
                self._feeder.step()
                await self._notify()
                await wait_for_sockets_async(self._feeder.watched_sockets(), _MAX_WAIT_S, self._event)
        finally:
            await self._notify()  # waiting callers must see that no further step comes

    async def _notify(self) -> None:
        async with self._stepped:
            self._stepped.notify_all()
