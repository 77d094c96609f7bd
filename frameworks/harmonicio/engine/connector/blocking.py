"""The connector for blocking code."""

import select
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

from frameworks.harmonicio.engine.connector.feeder import Feeder
from frameworks.harmonicio.engine.connector.options import Options
from frameworks.harmonicio.engine.errors import HarmonicError, MessageTooLongError, UnreachableError
from frameworks.harmonicio.engine.wire.frame import Buffer, as_buffer, as_buffers
from frameworks.harmonicio.engine.wire.tls_socket import StreamSocket

_MAX_WAIT_S, _UNCONNECTED_WAIT_S = 0.05, 0.01


class Connector:
    """Feeds a stream. It is not thread-safe; use one for each thread.

        with Connector(c_name="images", port=8090) as connector:
            connector.send(image)
            connector.flush()

    `send` returns once the message is sent, or waits for others within `linger`; `flush` once everything is
    acknowledged.

    Args:
        timeout: seconds without progress after which a call raises UnreachableError.
        options: as of Options.
    """

    def __init__(self, *, timeout: float = 30.0, **options: object) -> None:
        self._options = Options(**options)  # type: ignore[arg-type]  # checked by Options itself
        self._timeout, self._feeder = timeout, Feeder(self._options)
        self._lingering: list[Buffer] = []
        self._lingering_bytes, self._oldest = 0, 0.0

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
        """Return the feeder, for its counters."""
        return self._feeder

    def send(self, message: Buffer) -> None:
        """Send one message.

        Raises:
            MessageTooLongError: it, or one before it that waited within `linger`, is too long, and is dropped alone.
            UnreachableError: it could not be sent within the timeout.
        """
        message = bytes(as_buffer(message))
        self._lingering.append(message)
        self._lingering_bytes += len(message)
        now = time.monotonic()
        if len(self._lingering) == 1:
            self._oldest = now
        options = self._options
        if now >= self._oldest + options.linger or self._lingering_bytes >= options.batch_bytes:
            try:
                self._send_lingering()
            except MessageTooLongError:
                raise
            except HarmonicError:
                self._lingering_bytes -= len(self._lingering.pop())  # its caller is told; those before it wait
                raise

    def send_many(self, messages: Iterable[Buffer]) -> None:
        """Send messages, which share frames; do not change mutable ones (a bytearray) until this returns."""
        self._send_lingering()
        self._send_all(_Unsent(as_buffers(messages), self._feeder))

    def flush(self) -> None:
        """Wait until everything is acknowledged; raises UnreachableError after the timeout without progress."""
        self._send_lingering()
        self._wait_until(lambda: self._feeder.unacked == 0)

    def close(self) -> None:
        """Close the connector and give up what is not acknowledged; idempotent."""
        self._feeder.close()

    def _send_lingering(self) -> None:
        if not self._lingering:
            return
        unsent = _Unsent(self._lingering, self._feeder)
        try:
            self._send_all(unsent)
        except MessageTooLongError:
            unsent.skip()
            raise
        finally:  # after an error the next call goes on with the rest, which `send` had taken
            self._lingering = unsent.rest()
            self._lingering_bytes = sum(map(len, self._lingering))

    def _send_all(self, unsent: "_Unsent") -> None:
        self._feeder.step()
        if not unsent.send():
            self._wait_until(unsent.send)

    def _wait_until(self, done: Callable[[], bool]) -> None:
        feeder = self._feeder
        progress, deadline = (feeder.taken, feeder.acked), time.monotonic() + self._timeout
        while not done():
            sockets = feeder.watched_sockets()
            wait_for_sockets(sockets, _MAX_WAIT_S if sockets else _UNCONNECTED_WAIT_S)
            feeder.step()
            if (feeder.taken, feeder.acked) != progress:
                progress, deadline = (feeder.taken, feeder.acked), time.monotonic() + self._timeout
            if time.monotonic() > deadline:
                where = f"the master at {self._options.host}:{self._options.port}"
                state = f"{feeder.pes} PEs can be reached, {feeder.unacked} messages are unacknowledged"
                why = "" if feeder.connected else f" ({feeder.error})"
                raise UnreachableError(f"nothing was taken for {self._timeout:g} s; {where}{why}: {state}")


def wait_for_sockets(sockets: Sequence[tuple[StreamSocket, bool]], timeout_s: float) -> None:
    """Return once one of the sockets is ready, or after the timeout.

    Args:
        sockets: (socket, whether to wait for it being writable, too); as of Feeder.watched_sockets.
        timeout_s: seconds.
    """
    if not sockets:
        time.sleep(timeout_s)
        return
    poll = select.poll()
    for sock, write in sockets:
        poll.register(sock.fileno(), select.POLLIN | (select.POLLOUT if write else 0))
    poll.poll(timeout_s * 1000)


class _Unsent:
    """Messages that wait for credit."""

    def __init__(self, messages: Sequence[Buffer], feeder: Feeder) -> None:
        self._messages, self._next, self._feeder = messages, 0, feeder

    def send(self) -> bool:
        """Offer the rest to the feeder; return whether all messages are taken."""
        self._next = self._feeder.offer(self._messages, self._next)
        return self._next >= len(self._messages)

    def skip(self) -> None:
        """Drop the first message that is not taken."""
        self._next += 1

    def rest(self) -> list[Buffer]:
        """Return the messages that are not taken."""
        return list(self._messages[self._next :])
