"""The process that counts what a program reports: 64-byte records from connections, or from a topic."""

import contextlib
import selectors
import socket
import time
from collections.abc import Iterator
from hmac import compare_digest

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from bench.config.address import Address
from bench.errors import ServiceError
from bench.model.message_codec import MIN_MESSAGE_BYTES
from bench.model.message_filler import Bytes
from bench.plugins import registry
from bench.plugins.protocols import Endpoint
from bench.system.child_main import serve_command
from bench.system.ipc import Channel
from bench.workload.delivery_counts import ProcessingReport, merge_reports
from bench.workload.processing import MessageProcessor

RECORD_BYTES = MIN_MESSAGE_BYTES
REPORT_INTERVAL_S = 0.05
"""Between two reports at high rates; at low ones they are sent at once."""
PIECE_BYTES = 2**20
MAX_MESSAGES = 20_000
MAX_CONNECTIONS = 256
TOKEN_TIMEOUT_S = 10.0
"""For a connection to say the token."""
CPU_MARK = b"cpu "
"""The beginning of a record that says how many CPU seconds the messages of the records after it took."""


class Reading(Struct, frozen=True, tag="reading"):
    """A command, sent once: count what is reported."""

    work: MessageProcessor
    token: str
    listen: str
    """host:port; port 0 for any"""
    results: Endpoint | None
    """the topic with the reports; None where they come over connections"""


class Listening(Struct, frozen=True, tag="listening"):
    """A reply: reports are counted from now on."""

    address: str
    """host:port; empty where they come from a topic"""


class Connected(Struct, frozen=True, tag="connected"):
    """A message: a program has connected and said the token."""


class RecordCounter:
    """Turns records into reports. A record is a message's header, or says the CPU time of those that follow it."""

    def __init__(self, work: MessageProcessor) -> None:
        self._work, self._cpu_s, self._says_cpu = work, 0.0, False

    def count(self, records: Bytes) -> list[ProcessingReport]:
        """Return the reports of a batch of records.

        Args:
            records: Bytes of shape (records, 64).

        Returns:
            One report for each run. Its CPU times are 0 until a record has said one.
        """
        marked = (records[:, : len(CPU_MARK)] == np.frombuffer(CPU_MARK, dtype=np.uint8)).all(axis=1)
        for row in records[marked]:
            self._cpu_s += _cpu_seconds(row.tobytes())
            self._says_cpu = True
        heads = records[~marked] if marked.any() else records
        reports = self._work.count_headers(heads) if len(heads) else []
        if not self._says_cpu:
            return [replace(report, cpu_requested_s=0.0) for report in reports]
        if reports:
            reports[-1] = replace(reports[-1], cpu_used_s=self._cpu_s)
            self._cpu_s = 0.0
        return reports


def _cpu_seconds(record: bytes) -> float:
    """Return what a record says; 0 where it is no number that a program could have used."""
    try:
        seconds = float(record[len(CPU_MARK) :].strip(b" \0"))
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds < 1e9 else 0.0


class _Reports:
    """The reports that are not sent yet; those of one run are merged."""

    def __init__(self, channel: Channel[Reading]) -> None:
        self._channel, self._waiting, self._sent = channel, list[ProcessingReport](), 0.0

    def add(self, reports: list[ProcessingReport]) -> None:
        self._waiting += reports
        if self._waiting and (not reports or time.monotonic() >= self._sent + REPORT_INTERVAL_S):
            for report in merge_reports(self._waiting):
                self._channel.send(report)
            self._waiting, self._sent = [], time.monotonic()


def main() -> None:
    """Serve the channel whose file number ends the command line."""
    serve_command(Reading, _read)


def _read(channel: Channel[Reading], reading: Reading) -> None:
    if reading.results is not None:
        _read_topic(channel, reading, reading.results)
    else:
        _read_connections(channel, reading)


def _read_topic(channel: Channel[Reading], reading: Reading, results: Endpoint) -> None:
    counter, reports = RecordCounter(reading.work), _Reports(channel)
    with contextlib.closing(registry.open_consumer(results)) as consumer:
        channel.send(Listening(""))
        while True:
            messages = consumer.take(MAX_MESSAGES, REPORT_INTERVAL_S)
            whole = [message if len(message) == RECORD_BYTES else bytes(RECORD_BYTES) for message in messages]
            reports.add(counter.count(_matrix(b"".join(whole))) if whole else [])
            channel.receive(timeout=0)  # EOFError ends it


def _read_connections(channel: Channel[Reading], reading: Reading) -> None:
    with _Connections(reading) as connections:
        channel.send(Listening(connections.address))
        reports = _Reports(channel)
        while True:
            reports.add([report for batch in connections.receive(channel) for report in batch])
            channel.receive(timeout=0)  # EOFError ends it


class _Connection:
    """A program's connection; nothing of it counts before it has said the token."""

    def __init__(self, sock: socket.socket, token: bytes) -> None:
        self.sock, self.trusted, self.since = sock, False, time.monotonic()
        self._expected, self._rest = token + b"\n", b""

    def read(self) -> bytes | None:
        """Return the whole records that have come; None when the connection is over or not ours."""
        try:
            piece = self.sock.recv(PIECE_BYTES)
        except (BlockingIOError, InterruptedError):
            return b""
        except OSError:
            return None
        if not piece:
            return None
        data = self._rest + piece
        if not self.trusted:
            if len(data) < len(self._expected):
                self._rest = data
                return b""
            if not compare_digest(data[: len(self._expected)], self._expected):
                return None
            self.trusted, data = True, data[len(self._expected) :]
        whole = len(data) - len(data) % RECORD_BYTES
        self._rest = data[whole:]
        return data[:whole]


class _Connections:
    """The listening port and the connections of a program. Raises ServiceError where it cannot listen."""

    def __init__(self, reading: Reading) -> None:
        self._counter, self._token = RecordCounter(reading.work), reading.token.encode()
        self._selector = selectors.DefaultSelector()
        try:
            self._listener = socket.create_server(Address.parse(reading.listen), backlog=64)
        except (OSError, ValueError, OverflowError) as problem:
            raise ServiceError(f"settings.command.listen: cannot listen at {reading.listen}: {problem}") from problem
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, None)

    def __enter__(self) -> "_Connections":
        return self

    def __exit__(self, *_: object) -> None:
        for key in list(self._selector.get_map().values()):
            self._drop(key.fileobj)  # type: ignore[arg-type]  # only sockets are registered
        self._selector.close()

    @property
    def address(self) -> str:
        """Return host:port of where it listens."""
        host, port = self._listener.getsockname()[:2]
        return f"{host}:{port}"

    def receive(self, channel: Channel[Reading]) -> Iterator[list[ProcessingReport]]:
        """Yield the reports of what has come; wait for at most REPORT_INTERVAL_S."""
        for key, _ in self._selector.select(REPORT_INTERVAL_S):
            if key.data is None:
                self._accept()
                continue
            connection: _Connection = key.data
            was_trusted, records = connection.trusted, connection.read()
            if connection.trusted and not was_trusted:
                channel.send(Connected())
            if records is None:
                self._drop(connection.sock)
            elif records:
                yield self._counter.count(_matrix(records))
        self._drop_silent()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            sock, _ = self._listener.accept()
            sock.setblocking(False)
            if len(self._selector.get_map()) > MAX_CONNECTIONS:
                sock.close()
            else:
                self._selector.register(sock, selectors.EVENT_READ, _Connection(sock, self._token))

    def _drop_silent(self) -> None:
        """Close connections that have not said the token in time."""
        oldest = time.monotonic() - TOKEN_TIMEOUT_S
        for key in list(self._selector.get_map().values()):
            if key.data is not None and not key.data.trusted and key.data.since < oldest:
                self._drop(key.data.sock)

    def _drop(self, sock: socket.socket) -> None:
        self._selector.unregister(sock)
        sock.close()


def _matrix(records: bytes) -> Bytes:
    return np.frombuffer(records, dtype=np.uint8).reshape(-1, RECORD_BYTES)


if __name__ == "__main__":
    main()
