"""Typed messages, one JSON line each, between the harness and a child process over an inherited socket pair."""

import socket
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

Received = TypeVar("Received")

MAX_LINE = 16 * 2**20
"""A longer line ends the channel: whatever stands at the other end is not ours."""


class Ready(Struct, frozen=True, tag="ready"):
    """A child process stands: it takes orders now."""


class Failure(Struct, frozen=True, tag="trouble"):
    """A child process cannot do what it was told; it will end."""

    reason: str


class Channel(Generic[Received]):
    """One end of a channel; what is heard at it is decoded strictly as `heard`, a Struct or a union of tagged ones."""

    def __init__(self, end: socket.socket, received: type[Received]) -> None:
        self._socket, self._decoder, self._encoder = end, msgspec.json.Decoder(received), msgspec.json.Encoder()
        self._rest = b""

    @classmethod
    def inherited(cls, fileno: int, received: type[Received]) -> "Channel[Received]":
        """The end that a parent passed on; `fileno` stands on the child's command line as --channel."""
        return cls(socket.socket(fileno=fileno), received)

    def send(self, message: msgspec.Struct) -> None:
        """Send one message; raises OSError once the other end is gone or has not read for ten seconds."""
        self._socket.settimeout(10)
        self._socket.sendall(self._encoder.encode(message) + b"\n")

    def receive(self, timeout: float | None = None) -> list[Received]:
        """The messages that have come, waiting at most `timeout` seconds for the first; EOFError once the other end is gone."""
        self._socket.settimeout(timeout)
        try:
            chunk = self._socket.recv(2**18)
        except (TimeoutError, BlockingIOError):
            return []
        if not chunk:
            raise EOFError("the other end of the channel is gone")
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise EOFError("a line on the channel is too long")
        return [self._decoder.decode(line) for line in lines]

    def close(self) -> None:
        self._socket.close()


class Inbox(Generic[Received]):
    """The harness's end: a thread empties the socket all the time, so that a child never waits for its reader."""

    def __init__(self, end: socket.socket, received: type[Received]) -> None:
        self._channel = Channel(end, received)
        self._heard: SimpleQueue[Received] = SimpleQueue()
        self.ended = False
        self._reader = Thread(target=self._read, daemon=True, name="channel")
        self._reader.start()

    def send(self, message: msgspec.Struct) -> bool:
        """Whether the message could be sent; False once the child is gone."""
        try:
            self._channel.send(message)
        except OSError:
            return False
        return True

    def received(self, timeout: float = 0) -> Iterator[Received]:
        """What has come since the last call, waiting at most `timeout` seconds for the first."""
        try:
            yield self._heard.get(timeout=timeout) if timeout > 0 else self._heard.get_nowait()
            while True:
                yield self._heard.get_nowait()
        except Empty:
            return

    def close(self) -> None:
        self._channel.close()

    def _read(self) -> None:
        try:
            while True:
                for message in self._channel.receive():
                    self._heard.put(message)
        except (EOFError, OSError, msgspec.DecodeError):
            self.ended = True
