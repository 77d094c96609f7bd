"""Typed messages, one JSON line each, between the harness and a child process over an inherited socket pair."""

import socket
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

Received = TypeVar("Received")

MAX_LINE_BYTES = 16 * 2**20
"""A longer line ends the channel: the other end is not ours."""
_SEND_TIMEOUT_S = 10


class Ready(Struct, frozen=True, tag="ready"):
    """A child's message: it is ready for commands."""


class Failure(Struct, frozen=True, tag="failure"):
    """A child's message: it cannot execute a command, and will end."""

    reason: str


class Channel(Generic[Received]):
    """One end of a channel; messages that arrive are decoded strictly as `received`, a Struct or a union."""

    def __init__(self, end: socket.socket, received: type[Received]) -> None:
        self._socket, self._decoder, self._encoder = end, msgspec.json.Decoder(received), msgspec.json.Encoder()
        self._rest = b""

    @classmethod
    def inherited(cls, fileno: int, received: type[Received]) -> "Channel[Received]":
        """Return the end that a parent passed on; its file number follows `--channel` on the child's command line."""
        return cls(socket.socket(fileno=fileno), received)

    def send(self, message: msgspec.Struct) -> None:
        """Send one message.

        Raises:
            OSError: The other end is gone, or has not read for ten seconds.
        """
        self._socket.settimeout(_SEND_TIMEOUT_S)
        self._socket.sendall(self._encoder.encode(message) + b"\n")

    def receive(self, timeout: float | None = None) -> list[Received]:
        """Return the messages that have arrived, waiting at most `timeout` seconds (None: no limit) for the first.

        Raises:
            EOFError: The other end is gone, or sent a line above MAX_LINE_BYTES.
            msgspec.DecodeError: A line is not one of the expected messages.
        """
        self._socket.settimeout(timeout)
        try:
            chunk = self._socket.recv(2**18)
        except (TimeoutError, BlockingIOError):
            return []
        if not chunk:
            raise EOFError("the other end of the channel is gone")
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            raise EOFError("a line on the channel is too long")
        return [self._decoder.decode(line) for line in lines]

    def close_sending(self) -> None:
        """Signal the end of the commands; messages of the other end can still be received."""
        self._shut(socket.SHUT_WR)

    def close(self) -> None:
        """Close the socket, and wake a thread that waits in `receive`, which closing alone does not."""
        self._shut(socket.SHUT_RDWR)
        self._socket.close()

    def _shut(self, how: int) -> None:
        try:
            self._socket.shutdown(how)
        except OSError:
            return


class Inbox(Generic[Received]):
    """The harness's end of a channel: a thread empties the socket all the time, so that a child never blocks."""

    def __init__(self, end: socket.socket, received: type[Received]) -> None:
        self._channel = Channel(end, received)
        self._queue: SimpleQueue[Received] = SimpleQueue()
        self.ended = False
        self._reader = Thread(target=self._read, daemon=True, name="channel")
        self._reader.start()

    def send(self, message: msgspec.Struct) -> bool:
        """Send a message; return False if the child is gone."""
        try:
            self._channel.send(message)
        except OSError:
            return False
        return True

    def receive(self, timeout: float = 0) -> Iterator[Received]:
        """Yield the messages that have arrived since the last call, waiting at most `timeout` seconds for the first."""
        try:
            yield self._queue.get(timeout=timeout) if timeout > 0 else self._queue.get_nowait()
            while True:
                yield self._queue.get_nowait()
        except Empty:
            return

    def close_sending(self) -> None:
        """Signal the end of the commands to the child; its last messages still arrive."""
        self._channel.close_sending()

    def close(self) -> None:
        """Close the channel and end the thread."""
        self._channel.close()

    def _read(self) -> None:
        try:
            while True:
                for message in self._channel.receive():
                    self._queue.put(message)
        except (EOFError, OSError, msgspec.DecodeError):
            self.ended = True
