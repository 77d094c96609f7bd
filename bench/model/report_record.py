"""Records with which a program under test reports messages: each header, and what was done with the message.

A record is the header of 64 bytes alone, or the header and 16 hexadecimal digits: the CPU time that the program spent
on the message in microseconds (8 digits), and the CRC-32 of the body, which is all that follows the header (8 digits).
Eight dashes stand for what the program does not say. docs/any-program.md describes the protocol.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.model.message_codec import read_headers
from bench.model.message_filler import Filler
from bench.model.message_header import HEADER_BYTES, Bytes, Headers

SHORT_BYTES, LONG_BYTES = HEADER_BYTES, HEADER_BYTES + 16
"""Of a record with the header alone, and of one that says more."""
_NUMBER_BYTES = 8
_NO_DIGIT = 16
_DIGITS = np.full(256, _NO_DIGIT, dtype=np.uint8)
_DIGITS[[*b"0123456789abcdef"]] = np.arange(16, dtype=np.uint8)
_DIGITS[[*b"ABCDEF"]] = np.arange(10, 16, dtype=np.uint8)
_WEIGHTS = np.array([16**place for place in range(_NUMBER_BYTES - 1, -1, -1)], dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class ReportedMessages:
    """The messages that a batch of records reports, and what the program says of them."""

    headers: Headers
    """of the messages whose header and CRC-32 are right; `corrupted` counts the others"""
    cpu_used_s: float | None
    """CPU seconds that the program spent on them; None unless it says so of each"""
    verified: bool
    """whether the program gave the CRC-32 of every body"""


def read_records(records: Bytes, filler: Filler | None) -> ReportedMessages:
    """Parse a batch of records.

    Args:
        records: Bytes of shape (records, SHORT_BYTES) or (records, LONG_BYTES).
        filler: Fillers of messages of the cell's size; None where sizes differ: no CRC-32 is compared then.

    Returns:
        The messages that they report.
    """
    headers, good = read_headers(records[:, :HEADER_BYTES])
    if records.shape[1] == SHORT_BYTES:
        return ReportedMessages(headers, None, verified=False)
    numbers = records[good, HEADER_BYTES:]
    microseconds, says_time = _read_numbers(numbers[:, :_NUMBER_BYTES])
    checksums, says_checksum = _read_numbers(numbers[:, _NUMBER_BYTES:])
    verified = filler is not None and bool(says_checksum.all())
    if filler is not None:
        right = ~says_checksum | (checksums == filler.checksums[filler.locate(headers.producer, headers.seq)])
        if not right.all():
            wrong = int(np.count_nonzero(~right))
            headers = replace(headers.select(right), corrupted=headers.corrupted + wrong)
            microseconds, says_time = microseconds[right], says_time[right]
    used = float(microseconds.sum()) * 1e-6 if says_time.all() else None
    return ReportedMessages(headers, used, verified)


def _read_numbers(digits: Bytes) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the number in each row of 8 hexadecimal digits, and whether it is one."""
    values = _DIGITS[digits]
    is_number = np.asarray((values < _NO_DIGIT).all(axis=1))
    numbers: NDArray[np.uint64] = values.astype(np.uint64) @ _WEIGHTS
    return numbers, is_number
