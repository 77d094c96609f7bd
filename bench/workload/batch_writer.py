"""Writing the messages of a load specification and offering them to a source's client until it takes them."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bench.model.message_codec import MessageWriter
from bench.model.message_filler import make_filler
from bench.model.message_keys import KeySequence, encode_keys
from bench.model.message_sizes import SizeSequence
from bench.system import clock
from bench.workload.load_spec import LoadSpec
from bench.workload.span_recorder import NoRecorder, SpanRecorder

Times = NDArray[np.float64]
Filler = bytes | memoryview
MAX_BATCH_MESSAGES = 4096
MAX_BATCH_BYTES = 2**20
"""Of one batch: new messages stay in a core's cache until they are sent."""
MAX_GATHERED_BYTES = 2**23
"""Of one batch whose fillers are not copied: a larger batch amortises the 0.1 ms that each step costs, a third of the
time that sending 1 MB takes."""


class SourceClient(Protocol):
    """The part of a source's Sender (bench.plugins.protocols) that a batch writer uses."""

    def send(self, messages: Sequence[bytes]) -> int:
        """Give messages to the source in their order; return how many it took, from the first on."""

    def confirmed(self) -> tuple[int, int]:
        """Return the total (confirmed, failed) messages since the client was opened."""


@runtime_checkable
class GatheringClient(Protocol):
    """A client that takes a message in two pieces, header and filler, which spares a copy of large messages."""

    gathers_from: int
    """size in bytes from which on two pieces are faster than one"""

    def send_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler]) -> int:
        """Do as `send` with messages heads[i] + fillers[i]; neither piece is ever written again."""


@runtime_checkable
class BlockingClient(Protocol):
    """A client that may wait for its source within `send` and measures for how long."""

    waited: float
    """seconds so far"""


@runtime_checkable
class KeyedClient(Protocol):
    """A client of a source whose messages can have keys."""

    def send_keyed(self, messages: Sequence[bytes], keys: Sequence[bytes]) -> int:
        """Do as `send`; message i has the key keys[i], and messages with the same key keep their order."""


@runtime_checkable
class RecordingClient(Protocol):
    """A client that can record what it does, and what it sends to whom."""

    def record(self, spans: SpanRecorder | NoRecorder) -> None:
        """Record into these spans from now on, instead of earlier ones; the thread that sends takes them."""


class BatchWriter:
    """A writer of batches of at most `max_messages` messages, and an offerer of what the client has not taken yet."""

    def __init__(self, spec: LoadSpec, client: SourceClient) -> None:
        self._client = client
        max_bytes = MAX_GATHERED_BYTES if _is_gathered(spec, client) else MAX_BATCH_BYTES
        self.max_messages = max(1, min(MAX_BATCH_MESSAGES, max_bytes // spec.message_bytes))
        self._format = _create_format(spec, client, self.max_messages)
        self._first = 0
        self._pending: Sequence[bytes] = ()

    @property
    def pending(self) -> int:
        """Number of written messages that the client has not taken yet."""
        return len(self._pending)

    def write(self, first: int, due: Times, now: float) -> None:
        """Write the next batch; nothing may be pending.

        Args:
            first: Sequence number of the first message.
            due: Due times, one a message, in CLOCK_MONOTONIC seconds.
            now: Send time that the headers carry, by the same clock.
        """
        self._first, self._pending = first, self._format.write(first, due, now)

    def offer(self) -> int:
        """Offer the pending messages to the client; return how many it took."""
        taken = self._format.offer(self._client, self._first, self._pending)
        self._first, self._pending = self._first + taken, self._pending[taken:]
        return taken


class _Format(Protocol):
    """A way to write messages and to hand them to a client."""

    def write(self, first: int, due: Times, now: float) -> Sequence[bytes]: ...

    def offer(self, client: SourceClient, first: int, pending: Sequence[bytes]) -> int: ...


def start_recorder(spec: LoadSpec, client: SourceClient) -> SpanRecorder | NoRecorder:
    """Return the recorder of a client that is traced from now on; of any other one it records nothing."""
    spans: SpanRecorder | NoRecorder = NoRecorder()
    if isinstance(client, RecordingClient):
        if spec.traced:
            spans = SpanRecorder(f"sender {spec.producer}", "send", ahead_s=clock.seconds_ahead(spec.clock))
        client.record(spans)
    return spans


def _is_gathered(spec: LoadSpec, client: SourceClient) -> bool:
    """Return True if the client gets header and filler as two pieces."""
    return isinstance(client, GatheringClient) and spec.message_bytes >= client.gathers_from and spec.keys is None


def _create_format(spec: LoadSpec, client: SourceClient, max_messages: int) -> _Format:
    created: _Format
    if _is_gathered(spec, client):
        created = _TwoPieces(spec)
    else:
        created = _FixedSize(spec) if spec.sizes is None else _MixedSizes(spec)
        if spec.keys is not None:
            created = _Keyed(created, spec.keys, spec.producer)
    return created if spec.stamped else _Prewritten(created, spec.begin, max_messages)


class _FixedSize:
    """Messages of one size."""

    def __init__(self, spec: LoadSpec) -> None:
        self.write = _create_message_writer(spec).write

    def offer(self, client: SourceClient, _first: int, pending: Sequence[bytes]) -> int:
        return client.send(pending)


class _MixedSizes:
    """Messages whose sizes differ."""

    def __init__(self, spec: LoadSpec) -> None:
        self._writer, self._fillers = _create_message_writer(spec), _Fillers(spec)

    def write(self, first: int, due: Times, now: float) -> Sequence[bytes]:
        headers = self._writer.write_headers(first, due, now)
        return [header + rest for header, rest in zip(headers, self._fillers.slices(first, len(headers)), strict=True)]

    def offer(self, client: SourceClient, _first: int, pending: Sequence[bytes]) -> int:
        return client.send(pending)


class _TwoPieces:
    """Headers, which are written for each message, and fillers, which were made before."""

    def __init__(self, spec: LoadSpec) -> None:
        self.write, self._fillers = _create_message_writer(spec).write_headers, _Fillers(spec)

    def offer(self, client: SourceClient, first: int, pending: Sequence[bytes]) -> int:
        assert isinstance(client, GatheringClient)
        return client.send_pieces(pending, self._fillers.slices(first, len(pending)))


class _Keyed:
    """Messages of another format, with their keys."""

    def __init__(self, inner: _Format, sequence: KeySequence, producer: int) -> None:
        self.write = inner.write
        self._sequence, self._producer, self._keys = sequence, producer, encode_keys(sequence.keys)

    def offer(self, client: SourceClient, first: int, pending: Sequence[bytes]) -> int:
        assert isinstance(client, KeyedClient), "preflight refuses keys for a source without keys"
        numbers = np.arange(first, first + len(pending), dtype=np.uint64)
        keys = self._sequence.lookup(np.full(len(pending), self._producer), numbers)
        return client.send_keyed(pending, [self._keys[key] for key in keys.tolist()])


class _Prewritten:
    """Messages of another format that are written once and sent again and again, so that headers cost nothing."""

    def __init__(self, inner: _Format, begin: float, max_messages: int) -> None:
        self._messages, self._inner = inner.write(0, np.full(max_messages, begin), begin), inner
        self._first = 0

    def write(self, first: int, due: Times, _now: float) -> Sequence[bytes]:
        self._first = first
        return self._messages[: len(due)]

    def offer(self, client: SourceClient, first: int, pending: Sequence[bytes]) -> int:
        return self._inner.offer(client, first - self._first, pending)


class _Fillers:
    """The bytes after the header of each message; never copied."""

    def __init__(self, spec: LoadSpec) -> None:
        self._sizes, self._producer = spec.sizes, spec.producer
        largest = spec.message_bytes if spec.sizes is None else spec.sizes.sizes.largest
        self._filler = make_filler(largest, spec.entropy)

    def slices(self, first: int, count: int) -> Sequence[Filler]:
        if self._sizes is None:
            return self._filler.rows_from(self._producer, first, count)
        sizes = _lookup_sizes(self._sizes, self._producer, first, count)
        numbers = np.arange(first, first + count, dtype=np.uint64)
        return self._filler.slices(np.full(count, self._producer), numbers, sizes)


def _lookup_sizes(sequence: SizeSequence, producer: int, first: int, count: int) -> list[int]:
    numbers = np.arange(first, first + count, dtype=np.uint64)
    sizes: list[int] = sequence.lookup(np.full(count, producer), numbers).tolist()
    return sizes


def _create_message_writer(spec: LoadSpec) -> MessageWriter:
    return MessageWriter(
        run=spec.run, producer=spec.producer, size=spec.message_bytes, cost=spec.cpu_seconds, entropy=spec.entropy
    )
