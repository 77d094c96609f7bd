"""The encoding of messages: a header of 64 bytes, then a known filler, in exactly the cell's size.

The filler depends on size, entropy, producer and sequence number, so that a reader can verify every byte of it and
neighbours differ (bench.model.message_filler). Reading and writing work on batches and are vectorised with numpy.
"""

from collections.abc import Callable, Sequence
from operator import add

import numpy as np
from numpy.typing import NDArray

from bench.model.message_filler import Filler, make_filler
from bench.model.message_header import (
    FEW,
    HEADER_BYTES,
    Bytes,
    Headers,
    HeaderWriter,
    join_few,
    make_headers,
    parse_fields,
    parse_one,
    sequence_numbers,
    split_rows,
)

MIN_MESSAGE_BYTES = HEADER_BYTES

_LONG = 768  # bytes; from this size on each message is compared by itself, not as a row of a matrix
_LONG_ROW = 8192  # the same for a batch that is one matrix already
_JOINED = 160  # bytes; from this size on header + filler are joined: a matrix of them would touch new memory twice

Rows = NDArray[np.int64]
SizesOf = Callable[[NDArray[np.int64], NDArray[np.uint64]], NDArray[np.int64]]
"""A function of the producers and sequence numbers of messages that returns their sizes in bytes."""


class MessageWriter:
    """A writer of the messages of one producer in one run; sizes in bytes, CPU cost in seconds."""

    def __init__(self, *, run: int, producer: int, size: int, cost: float, entropy: float) -> None:
        if size < MIN_MESSAGE_BYTES:
            raise ValueError(f"a message has at least {MIN_MESSAGE_BYTES} bytes, not {size}")
        self._headers, self._producer = HeaderWriter(run=run, producer=producer, cost=cost), producer
        self._size, self.filler = size, make_filler(size, entropy)

    def write(self, first: int, due: NDArray[np.float64], sent: float) -> list[bytes]:
        """Return one message for each due time, numbered from `first`; times are CLOCK_MONOTONIC seconds."""
        if self._size >= _JOINED or len(due) <= FEW:
            fillers = self.filler.rows_from(self._producer, first, len(due))
            return [*map(add, self._headers.write(first, due, sent), fillers)]
        block = np.empty((len(due), self._size), dtype=np.uint8)
        block[:, :HEADER_BYTES] = self._headers.write_matrix(first, due, sent)
        block[:, HEADER_BYTES:] = self.filler.matrix_from(self._producer, first, len(due))
        return split_rows(block)

    def write_headers(self, first: int, due: NDArray[np.float64], sent: float) -> list[bytes]:
        """Return only the headers of what `write` would return, for callers that add the filler themselves."""
        return self._headers.write(first, due, sent)


def read(messages: Sequence[bytes], size: int, filler: Filler) -> Headers:
    """Verify a batch in which every message should have the same size.

    Args:
        messages: Whole messages, header and filler.
        size: Expected size of each message in bytes.
        filler: Fillers of messages of this size.

    Returns:
        The headers of the intact messages.
    """
    whole, wrong_size = messages, 0
    if [*map(len, messages)].count(size) != len(messages):
        whole = [message for message in messages if len(message) == size]
        wrong_size = len(messages) - len(whole)
    if size >= _LONG:
        headers = _read_long(whole, filler)
    else:
        headers = read_matrix(np.frombuffer(b"".join(whole), dtype=np.uint8).reshape(len(whole), size), filler)
    return _add_corrupted(headers, wrong_size)


def read_mixed(messages: Sequence[bytes], filler: Filler, sizes: SizesOf) -> Headers:
    """Verify a batch of messages whose sizes follow from their producers and sequence numbers.

    Args:
        messages: Whole messages, header and filler.
        filler: Fillers of messages of the largest size.
        sizes: Returns the expected sizes.

    Returns:
        The headers of the intact messages.
    """
    whole = [message for message in messages if len(message) >= HEADER_BYTES]
    heads = np.frombuffer(b"".join([message[:HEADER_BYTES] for message in whole]), dtype=np.uint8)
    fields, good = parse_fields(heads.reshape(len(whole), HEADER_BYTES))
    producer, seq = fields["producer"].astype(np.int64), sequence_numbers(fields)
    lengths = [*map(len, whole)]
    pairs = zip(whole, filler.slices(producer, seq, lengths), strict=True)
    intact = np.array([message.endswith(expected) for message, expected in pairs], dtype=bool)
    right = sizes(producer, seq) == np.array(lengths, dtype=np.int64)
    return _add_corrupted(make_headers(fields, good & intact & right), len(messages) - len(whole))


def read_headers(heads: Bytes) -> tuple[Headers, NDArray[np.bool_]]:
    """Parse the headers of messages whose fillers are not there.

    Args:
        heads: Bytes of shape (messages, 64).

    Returns:
        The headers whose checksum is right, and which of the batch these are.
    """
    fields, good = parse_fields(np.ascontiguousarray(heads))
    return make_headers(fields, good), good


def _read_long(messages: Sequence[bytes], filler: Filler) -> Headers:
    """Verify long messages without a copy: `endswith` compares at the speed of memory."""

    def compare(numbers: Rows) -> NDArray[np.bool_]:
        rows = map(filler.rows.__getitem__, numbers.tolist())
        return np.array([*map(bytes.endswith, messages, rows)], dtype=bool)

    heads = np.frombuffer(b"".join([message[:HEADER_BYTES] for message in messages]), dtype=np.uint8)
    return _parse(heads.reshape(len(messages), HEADER_BYTES), filler, compare)


def read_matrix(matrix: Bytes, filler: Filler) -> Headers:
    """Verify a batch in one buffer.

    Args:
        matrix: Bytes of shape (messages, size).
        filler: Fillers of messages of this size.

    Returns:
        The headers of the intact messages.
    """

    def compare(numbers: Rows) -> NDArray[np.bool_]:
        bodies = matrix[:, HEADER_BYTES:]
        if matrix.shape[1] >= _LONG_ROW:
            pairs = zip(bodies, numbers.tolist(), strict=True)
            rows = filler.rows
            return np.array([_are_equal(body, np.frombuffer(rows[row], dtype=np.uint8)) for body, row in pairs], bool)
        wrong = bodies != filler.matrix(numbers)
        if wrong.any():
            intact: NDArray[np.bool_] = ~wrong.any(axis=1)
            return intact
        return np.ones(len(matrix), dtype=bool)  # the usual case, four times faster than row by row

    return _parse(np.ascontiguousarray(matrix[:, :HEADER_BYTES]), filler, compare)


def _are_equal(one: Bytes, other: Bytes) -> bool:
    """Compare two byte arrays of the same length, eight bytes at a time, which halves the memory that is touched."""
    words = len(other) // 8 * 8
    return bool(
        (one[:words].view(np.uint64) == other[:words].view(np.uint64)).all() and (one[words:] == other[words:]).all()
    )


def _parse(heads: Bytes, filler: Filler, compare: Callable[[Rows], NDArray[np.bool_]]) -> Headers:
    """Parse headers; `compare` returns which messages have the filler of these rows."""
    if len(heads) <= FEW:
        parsed = [parse_one(head) for head in split_rows(heads)]
        rows = [filler.row(row[2], row[3] * 2**32 + row[4]) if row is not None else 0 for row in parsed]
        same = compare(np.array(rows, dtype=np.int64)).tolist()
        return join_few([row for row, good in zip(parsed, same, strict=True) if row is not None and good], len(heads))
    fields, good = parse_fields(heads)
    return make_headers(
        fields, good & compare(filler.locate(fields["producer"].astype(np.int64), sequence_numbers(fields)))
    )


def _add_corrupted(headers: Headers, more: int) -> Headers:
    corrupted = headers.corrupted + more
    return Headers(headers.run, headers.producer, headers.seq, headers.due, headers.sent, headers.cost, corrupted)
