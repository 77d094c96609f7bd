"""The messages of an order on their way into a source's client: written once, offered until they are taken."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bench.model.message_codec import HEADER_BYTES, MessageWriter, make_filler
from bench.model.message_keys import KeySequence, encode_keys
from bench.model.message_sizes import SizeSequence
from bench.workload.load_spec import LoadSpec

Times = NDArray[np.float64]
Filler = bytes | memoryview
MAX_MESSAGES, MAX_BYTES, MAX_BYTES_IN_PIECES = 4096, 2**20, 2**23
"""Of one step: fresh messages stay in a core's cache until they are sent. Where they go in pieces nothing of their size is touched,
and a step costs 0.1 ms besides, a third of what sending 1 MB takes."""


class SourceClient(Protocol):
    """What an outlet needs of a source's Sender (bench.plugins.protocols)."""

    def send(self, messages: Sequence[bytes]) -> int: ...

    def confirmed(self) -> tuple[int, int]: ...


@runtime_checkable
class GatheringClient(Protocol):
    """A client that takes a message in two pieces, header and filler, which spares large ones a copy and fresh memory."""

    gathers_from: int
    """bytes of a message from which on that is the better way"""

    def send_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler]) -> int:
        """As `send`; message i is heads[i] followed by fillers[i], neither of which is ever written again."""


@runtime_checkable
class BlockingClient(Protocol):
    """A client that may wait for its source within `send`, and knows for how long."""

    waited: float
    """seconds so far"""


@runtime_checkable
class KeyedClient(Protocol):
    """A client of a source whose messages can have keys."""

    def send_keyed(self, messages: Sequence[bytes], keys: Sequence[bytes]) -> int:
        """As `send`; message i has the key keys[i], and all of one key arrive in their order."""


class BatchWriter:
    """Writes the messages of one order, at most `most` at once, and offers them to its client."""

    def __init__(self, spec: LoadSpec, client: SourceClient) -> None:
        self._client = client
        most_bytes = MAX_BYTES_IN_PIECES if _in_pieces(spec, client) else MAX_BYTES
        self.most = max(1, min(MAX_MESSAGES, most_bytes // spec.message_bytes))
        self._form = _form_of(spec, client, self.most)
        self._first = 0
        self._waiting: Sequence[bytes] = ()

    @property
    def waiting(self) -> int:
        """How many written messages the client has not taken yet."""
        return len(self._waiting)

    def write(self, first: int, due: Times, now: float) -> None:
        """Have a message for each due time wait, numbered from `first`; none may wait yet."""
        self._first, self._waiting = first, self._form.write(first, due, now)

    def offer(self) -> int:
        """Offer the client what waits; how many it took."""
        taken = self._form.offer(self._client, self._first, self._waiting)
        self._first, self._waiting = self._first + taken, self._waiting[taken:]
        return taken


class _Form(Protocol):
    """In which form messages are written and offered."""

    def write(self, first: int, due: Times, now: float) -> Sequence[bytes]: ...

    def offer(self, client: SourceClient, first: int, waiting: Sequence[bytes]) -> int: ...


def _in_pieces(spec: LoadSpec, client: SourceClient) -> bool:
    return isinstance(client, GatheringClient) and spec.message_bytes >= client.gathers_from and spec.keys is None


def _form_of(spec: LoadSpec, client: SourceClient, most: int) -> _Form:
    form: _Form
    if _in_pieces(spec, client):
        form = _Pieces(spec)
    else:
        form = _Whole(spec) if spec.sizes is None else _Mixed(spec)
        if spec.keys is not None:
            form = _WithKeys(form, spec.keys, spec.producer)
    return form if spec.stamped else _Constant(form, spec.begin, most)


class _Whole:
    """Messages of one size."""

    def __init__(self, spec: LoadSpec) -> None:
        self.write = _writer_of(spec).write

    def offer(self, client: SourceClient, _first: int, waiting: Sequence[bytes]) -> int:
        return client.send(waiting)


class _Mixed:
    """Messages whose sizes differ."""

    def __init__(self, spec: LoadSpec) -> None:
        self._writer, self._fillers = _writer_of(spec), _Fillers(spec)

    def write(self, first: int, due: Times, now: float) -> Sequence[bytes]:
        heads = self._writer.write_headers(first, due, now)
        return [head + rest for head, rest in zip(heads, self._fillers.of(first, len(heads)), strict=True)]

    def offer(self, client: SourceClient, _first: int, waiting: Sequence[bytes]) -> int:
        return client.send(waiting)


class _Pieces:
    """Headers, which wait, and fillers, which are the same all the time."""

    def __init__(self, spec: LoadSpec) -> None:
        self.write, self._fillers = _writer_of(spec).write_headers, _Fillers(spec)

    def offer(self, client: SourceClient, first: int, waiting: Sequence[bytes]) -> int:
        assert isinstance(client, GatheringClient)
        return client.send_pieces(waiting, self._fillers.of(first, len(waiting)))


class _WithKeys:
    """Messages of another form, with their keys."""

    def __init__(self, form: _Form, drawing: KeySequence, producer: int) -> None:
        self.write = form.write
        self._drawing, self._producer, self._names = drawing, producer, encode_keys(drawing.keys)

    def offer(self, client: SourceClient, first: int, waiting: Sequence[bytes]) -> int:
        assert isinstance(client, KeyedClient), "a scenario with keys for a source without is refused"
        numbers = np.arange(first, first + len(waiting), dtype=np.uint64)
        keys = self._drawing.lookup(np.full(len(waiting), self._producer), numbers)
        return client.send_keyed(waiting, [self._names[key] for key in keys.tolist()])


class _Constant:
    """Messages of another form that were written once: what headers cost, nobody pays."""

    def __init__(self, form: _Form, begin: float, most: int) -> None:
        self._messages, self.offer = form.write(0, np.full(most, begin), begin), form.offer

    def write(self, _first: int, due: Times, _now: float) -> Sequence[bytes]:
        return self._messages[: len(due)]


class _Fillers:
    """What follows the header of each message of an order; never copied."""

    def __init__(self, spec: LoadSpec) -> None:
        self._sizes, self._producer = spec.sizes, spec.producer
        largest = spec.message_bytes if spec.sizes is None else spec.sizes.sizes.largest
        self._longest = make_filler(largest, spec.entropy)

    def of(self, first: int, count: int) -> Sequence[Filler]:
        if self._sizes is None:
            return [self._longest] * count
        view, sizes = memoryview(self._longest), _sizes(self._sizes, self._producer, first, count)
        return [view[: size - HEADER_BYTES] for size in sizes]


def _sizes(drawing: SizeSequence, producer: int, first: int, count: int) -> list[int]:
    drawn: list[int] = drawing.lookup(np.full(count, producer), np.arange(first, first + count, dtype=np.uint64)).tolist()
    return drawn


def _writer_of(spec: LoadSpec) -> MessageWriter:
    return MessageWriter(
        run=spec.run, producer=spec.producer, size=spec.message_bytes, cost=spec.cpu_seconds, entropy=spec.entropy
    )
