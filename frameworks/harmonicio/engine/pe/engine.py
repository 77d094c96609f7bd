"""The engine of a PE: one thread that receives, runs the function, and acknowledges; credit bounds all that it holds.

A message is acknowledged when the function has returned. A frame that is sent again (its acknowledgement was lost
with a connection) is acknowledged without being processed: sessions and numbers tell, in ranges that do not grow
with time.
"""

import contextlib
import logging
import selectors
import socket
import ssl
import time
from collections.abc import Callable
from functools import partial
from secrets import compare_digest, token_hex

from msgspec import Struct

from frameworks.harmonicio.engine.errors import ProtocolError
from frameworks.harmonicio.engine.pe.batch_merging import merge_batches
from frameworks.harmonicio.engine.pe.engine_state import EngineState
from frameworks.harmonicio.engine.pe.function import UserFunction
from frameworks.harmonicio.engine.pe.inbound import InboundConnection
from frameworks.harmonicio.engine.pe.observation import Observation
from frameworks.harmonicio.engine.pe.poller import Poller
from frameworks.harmonicio.engine.wire.acceptor import Acceptor
from frameworks.harmonicio.engine.wire.control_messages import Bye, Hello
from frameworks.harmonicio.engine.wire.frame import SHARED, Batch, Frame, FrameKind, encode_control
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool
from frameworks.harmonicio.engine.wire.tls_socket import StreamSocket

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 1024
_LISTEN_BACKLOG = 512
_MAX_HELLO_BYTES = 2**16
_SLOW_FRAME_S = 0.0005
"""Processing time of a frame above which its acknowledgement does not wait for others."""
_MAX_READS = 16
"""Reads of one connection before the others have their turn."""
_MAX_WORK_S = 0.05
"""Time of processing before the sockets are polled again, so that credit keeps flowing."""
_CHECK_INTERVAL_S = 0.5


class EngineOptions(Struct, frozen=True, kw_only=True):
    """The stream that an engine serves, and what it accepts."""

    c_name: str
    token: str = ""
    """token of connectors"""
    legacy_protocol: bool = False
    max_message_bytes: int


class Engine:
    """Serves one listening socket until `stop`.

    Args:
        listener: a bound socket, which the engine closes.
        function: called with the messages.
        options: the stream, and what is accepted.
        tls: context for TLS; plain TCP when None.
    """

    def __init__(
        self, listener: socket.socket, function: UserFunction, options: EngineOptions, tls: ssl.SSLContext | None = None
    ) -> None:
        listener.listen(_LISTEN_BACKLOG)
        listener.settimeout(0)
        self.function, self.state = function, EngineState(time.monotonic())
        self._instance, self._listener, self._options = token_hex(8), listener, options
        self._connections: set[InboundConnection] = set()
        self._buffers = BufferPool()
        max_first_bytes = options.max_message_bytes if options.legacy_protocol else _MAX_HELLO_BYTES
        self._acceptor = Acceptor(listener, self, max_first_bytes, tls)
        self._poller, self._observation = Poller(), Observation(function.observer)
        self._poller.register(listener, self._accept)

    @property
    def connections(self) -> int:
        """Return the number of connections that send frames."""
        return len(self._connections)

    def accept_raw_message(self, message: bytes, done: Callable[[], None] | None = None) -> None:
        """Process a message of the legacy protocol where that is spoken; safe from any thread, as `stop` is.

        Args:
            message: the message.
            done: called once it is processed, in the engine's thread.
        """
        if self._options.legacy_protocol:
            self.state.raw_messages.append((message, done))
            self._poller.wake()

    def stop(self) -> None:
        """Drain: take nothing new, process and acknowledge what was received, then return from `run`."""
        self.state.draining = True
        self._poller.wake()

    def run(self) -> None:
        """Serve until stopped."""
        checked = 0.0
        while not (self.state.draining and self._is_drained()):
            timeout = 0 if self.state.inbox else min(_CHECK_INTERVAL_S, self.function.idle())
            self._observation.poll(self._poller, timeout)
            self._work()
            now = time.monotonic()
            if now > checked + _CHECK_INTERVAL_S:
                checked = now
                self._drop_overdue(now)
        self.function.close()
        self._close()

    # receiving

    def _accept(self, _: int) -> None:
        self._acceptor.accept(MAX_CONNECTIONS - len(self._connections))

    def watch(self, sock: StreamSocket, on_readable: Callable[[], None]) -> None:
        """Call `on_readable` whenever the socket can be read."""
        self._poller.register(sock, lambda _: on_readable())

    def unwatch(self, sock: StreamSocket) -> None:
        """Stop watching the socket."""
        self._poller.unregister(sock)

    def accept_connection(self, sock: StreamSocket, data: bytes) -> None:
        """Take over the socket of a peer that sends frames; `data` is what was already received."""
        connection = InboundConnection(sock, self._buffers, _MAX_HELLO_BYTES)
        self._connections.add(connection)
        self._poller.register(sock, partial(self._serve, connection))
        self._receive(connection, data)

    def _serve(self, connection: InboundConnection, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                connection.frames.flush()
            for _ in range(_MAX_READS if events & selectors.EVENT_READ else 0):
                frames = connection.frames.read()
                self._receive(connection, frames)
                if not frames or connection.frames.closed:
                    break
                self._work()  # at once, while the messages are in the CPU caches
            self._watch_writable(connection)
        except (EOFError, OSError, ProtocolError) as error:
            self._drop(connection, error)

    def _receive(self, connection: InboundConnection, received: list[Frame] | bytes) -> None:
        try:
            for frame in connection.feed(received) if isinstance(received, bytes) else received:
                kind = frame.header.kind
                if kind is FrameKind.DATA and connection.welcomed:
                    connection.record_received(frame)
                    self.state.inbox.append((connection, frame))
                    self._observation.receive(connection, frame)
                elif kind is FrameKind.HELLO and not connection.welcomed:
                    self._welcome(connection, frame)
                elif kind is not FrameKind.RENEW:
                    raise ProtocolError(f"a {kind.name} frame does not belong here")  # noqa: TRY301  it ends as an error of the connection does
        except (OSError, ProtocolError) as error:
            self._drop(connection, error)

    def _welcome(self, connection: InboundConnection, frame: Frame) -> None:
        hello, options = frame.decode_body(Hello), self._options
        reason = ""
        if hello.c_name != options.c_name:
            reason = f"refused: this PE serves {options.c_name}, not {hello.c_name}"
        elif not compare_digest(hello.token.encode(), options.token.encode()):
            reason = "refused: token"
        if reason:
            connection.frames.send([encode_control(FrameKind.BYE, Bye(reason))])
            raise ProtocolError(f"a Hello was {reason}")
        credit = self.state.window.share(len(self._connections))
        connection.welcome(hello, self._instance, credit, options.max_message_bytes)

    # processing

    def _work(self) -> None:
        """Process what waits, for a limited time."""
        state, until = self.state, time.monotonic() + _MAX_WORK_S
        state.working = True  # before anything leaves the inbox
        while state.raw_messages:
            self._process_raw(*state.raw_messages.popleft())
        while state.inbox:
            self._process(*state.next_frames(self.function.max_messages))
            if time.monotonic() > until:
                break
        state.working = False
        if not state.inbox:
            self._acknowledge(list(self._connections))

    def _process_raw(self, message: bytes, done: Callable[[], None] | None) -> None:
        self.function.run(Batch(memoryview(message), None, 1))
        self.state.last_work = time.monotonic()
        if done is not None:
            done()

    def _process(self, connection: InboundConnection, frames: list[Frame]) -> None:
        try:
            batches = [self._decode_batch(connection, frame) for frame in frames]
        except ProtocolError as error:
            self._drop(connection, error)
            return
        state, queued, began = self.state, connection.is_master, time.monotonic()
        new = [state.new_batches(frame, batch, queued=queued) for frame, batch in zip(frames, batches, strict=True)]
        merged = merge_batches([batch for of_frame in new for batch in of_frame])
        failed = sum(self.function.run(batch) for batch in merged)
        del batches, new, merged
        state.record_work(began, time.monotonic(), sum(frame.header.count for frame in frames))
        may_wait = True
        for frame in frames:
            may_wait = connection.record_processed(frame.header, failed) and may_wait
            failed = 0
            self._buffers.give_back(frame)
        if not may_wait or state.last_work > began + _SLOW_FRAME_S:
            self._acknowledge([connection])

    def _decode_batch(self, connection: InboundConnection, frame: Frame) -> Batch:
        """Return the messages of a frame; raises ProtocolError when they are not valid."""
        if frame.header.flags & SHARED:
            if connection not in self._connections:
                raise ProtocolError("the owner of the shared memory has disconnected, and may write there again")
            frame.resolve_shared_body(connection.memory)
        return frame.batch()

    def _acknowledge(self, connections: list[InboundConnection]) -> None:
        for connection in connections:
            if not connection.has_pending_acks:
                continue
            self._observation.acknowledge(connection)
            try:
                connection.acknowledge(self.state.window.share(len(self._connections)))
                self._watch_writable(connection)
            except OSError as error:
                self._drop(connection, error)

    # closing

    def _watch_writable(self, connection: InboundConnection) -> None:
        if connection in self._connections:
            self._poller.watch_writable(connection.sock, wanted=connection.frames.wants_write)

    def _drop(self, connection: InboundConnection, error: Exception) -> None:
        if connection not in self._connections:
            return
        self.record_error(error)
        self._connections.discard(connection)
        self._poller.unregister(connection.sock)
        connection.frames.close()

    def record_error(self, error: Exception) -> None:
        """Log a connection that was closed because of invalid data."""
        if isinstance(error, ProtocolError):
            logger.warning("a connection was closed: %s", error)

    def _drop_overdue(self, now: float) -> None:
        self._acceptor.drop_overdue(now)
        for connection in [one for one in self._connections if one.overdue(now)]:
            self._drop(connection, ProtocolError("no Hello came"))

    def _is_drained(self) -> bool:
        """Return whether everything received was processed; the first call asks the peers to send no more."""
        if not self.state.drain_announced:
            self.state.drain_announced = True
            for connection in list(self._connections):
                with contextlib.suppress(OSError):
                    connection.frames.send([encode_control(FrameKind.BYE, Bye("draining"))])
        return self.state.is_empty and not any(connection.frames.unsent for connection in self._connections)

    def _close(self) -> None:
        for connection in list(self._connections):
            self._drop(connection, EOFError())
        self._acceptor.close()
        self._poller.close()
        self._listener.close()
