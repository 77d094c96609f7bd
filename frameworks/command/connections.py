"""The port at which programs report: what comes of it is records, whoever connects.

It trusts nobody: a connection that does not begin with the token is closed, their number is limited, and refusals fill
no log.
"""

import selectors
import socket
import time
from collections.abc import Iterator
from hmac import compare_digest

import numpy as np

from bench.config.address import Address
from bench.errors import ServiceError
from bench.model.message_header import Bytes
from bench.model.report_record import LONG_BYTES, SHORT_BYTES
from bench.services.ports import listen_at
from frameworks.refusals import Refusals

PIECE_BYTES = 2**20
"""At most so much is taken from the kernel at once."""
MAX_CONNECTIONS = 256
MAX_FIRST_LINE_BYTES = 64
TOKEN_TIMEOUT_S = 10.0
"""For a connection to say the token."""
RECORD_BYTES = {b"": SHORT_BYTES, b"64": SHORT_BYTES, b"80": LONG_BYTES}
"""By what follows the token in the first line."""
_NO_RECORDS: Bytes = np.empty((0, SHORT_BYTES), dtype=np.uint8)


class Connections:
    """A listening port and the connections of programs; nothing of one counts before it has said the token.

    Args:
        listen: where to listen; port 0 for any.
        token: that the first line of a connection must begin with.

    Raises:
        ServiceError: nobody can listen there.
    """

    def __init__(self, listen: Address, token: bytes) -> None:
        self.programs = 0
        """connections that have said the token so far"""
        self._token, self._refusals = token, Refusals()
        self._selector = selectors.DefaultSelector()
        try:
            self._listener = listen_at(listen, backlog=64)
        except (OSError, OverflowError) as problem:
            raise ServiceError(f"settings.command.listen: cannot listen at {listen}: {problem}") from problem
        self._listener.settimeout(0)
        self._selector.register(self._listener, selectors.EVENT_READ, None)

    def __enter__(self) -> "Connections":
        return self

    def __exit__(self, *_: object) -> None:
        for key in list(self._selector.get_map().values()):
            self._drop(key.fileobj)  # type: ignore[arg-type]  # only sockets are registered
        self._selector.close()

    @property
    def address(self) -> str:
        """Return host:port of where it listens."""
        return str(Address(*self._listener.getsockname()[:2]))

    def receive(self, timeout: float) -> Iterator[Bytes]:
        """Yield the records that have come, of shape (records, bytes of one); wait for at most `timeout` seconds."""
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                self._accept()
                continue
            connection: _Connection = key.data
            unknown = connection.record_bytes == 0
            try:
                records = connection.read()
            except ConnectionError as problem:
                self._drop(connection.sock, str(problem) if unknown else "")
                continue
            self.programs += unknown and connection.record_bytes > 0
            if len(records):
                yield records
        self._drop_silent()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return  # it has gone again
        sock.settimeout(0)
        if len(self._selector.get_map()) > MAX_CONNECTIONS:
            self._refusals.add(f"there are {MAX_CONNECTIONS} already")
            sock.close()
        else:
            self._selector.register(sock, selectors.EVENT_READ, _Connection(sock, self._token))

    def _drop_silent(self) -> None:
        """Close connections that have not said the token in time."""
        oldest = time.monotonic() - TOKEN_TIMEOUT_S
        for key in list(self._selector.get_map().values()):
            if key.data is not None and key.data.record_bytes == 0 and key.data.since < oldest:
                self._drop(key.data.sock, f"it said no token within {TOKEN_TIMEOUT_S:g} s")

    def _drop(self, sock: socket.socket, why: str = "") -> None:
        self._selector.unregister(sock)
        sock.close()
        if why:
            self._refusals.add(why)


class _Connection:
    """One connection: its first line, then records."""

    def __init__(self, sock: socket.socket, token: bytes) -> None:
        self.sock, self.since = sock, time.monotonic()
        self.record_bytes = 0  # until it has said the token
        self._token, self._rest = token, b""

    def read(self) -> Bytes:
        """Return the whole records that have come, of shape (records, bytes of one).

        Raises:
            ConnectionError: it is over, or is not a program's.
        """
        try:
            piece = self.sock.recv(PIECE_BYTES)
        except (BlockingIOError, InterruptedError):
            return _NO_RECORDS
        except OSError as problem:
            raise ConnectionError(f"it broke: {problem.strerror}") from problem
        if not piece:
            raise ConnectionError("it was closed before it said the token")
        self._rest += piece
        if self.record_bytes == 0:
            self._read_first_line()
        if self.record_bytes == 0:
            return _NO_RECORDS
        whole = len(self._rest) - len(self._rest) % self.record_bytes
        records, self._rest = self._rest[:whole], self._rest[whole:]
        return np.frombuffer(records, dtype=np.uint8).reshape(-1, self.record_bytes) if records else _NO_RECORDS

    def _read_first_line(self) -> None:
        line, newline, rest = self._rest.partition(b"\n")
        if len(line) > MAX_FIRST_LINE_BYTES:
            raise ConnectionError(f"its first line has more than {MAX_FIRST_LINE_BYTES} bytes")
        if not newline:
            return
        token, _, size = line.strip().partition(b" ")
        if not compare_digest(token, self._token):
            raise ConnectionError("it did not say the token")
        if size not in RECORD_BYTES:
            raise ConnectionError("what follows the token must be 64 or 80, the bytes of a record")
        self.record_bytes, self._rest = RECORD_BYTES[size], rest
