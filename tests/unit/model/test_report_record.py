"""What a program reports of its messages is read, and held against what they contain."""

from zlib import crc32

import numpy as np
import pytest

from bench.model.message_codec import MessageWriter
from bench.model.message_filler import make_filler
from bench.model.message_header import Bytes
from bench.model.report_record import LONG_BYTES, SHORT_BYTES, ReportedMessages, read_records

SIZE, ENTROPY = 200, 0.75
UNSAID = b"-" * 8


def messages(count: int, producer: int = 3) -> list[bytes]:
    """Return messages of one producer."""
    writer = MessageWriter(run=7, producer=producer, size=SIZE, cost=0.01, entropy=ENTROPY)
    return writer.write(0, np.full(count, 1000.0), 1000.0)


def long_record(message: bytes, cpu: bytes = b"%08x" % 10_000, checksum: bytes | None = None) -> bytes:
    """Return the record of a message that says more than its header."""
    return message[:64] + cpu + (b"%08x" % crc32(message[64:]) if checksum is None else checksum)


def read(records: list[bytes], *, size_is_known: bool = True) -> ReportedMessages:
    """Return what records say."""
    rows: Bytes = np.frombuffer(b"".join(records), dtype=np.uint8).reshape(len(records), -1)
    return read_records(rows, make_filler(SIZE, ENTROPY) if size_is_known else None)


def test_headers_alone_name_their_messages() -> None:
    """Nothing is known of bodies and CPU time."""
    found = read([message[:SHORT_BYTES] for message in messages(20)])
    assert found.headers.seq.tolist() == list(range(20))
    assert (found.headers.corrupted, found.cpu_used_s, found.verified) == (0, None, False)


@pytest.mark.parametrize("count", [1, 5, 100])
def test_a_long_record_says_cpu_time_and_checksum(count: int) -> None:
    """The times are added up, and every body was verified."""
    found = read([long_record(message) for message in messages(count)])
    assert (len(found.headers), found.headers.corrupted, found.verified) == (count, 0, True)
    assert found.cpu_used_s == pytest.approx(0.01 * count)


def test_capital_digits_are_digits() -> None:
    """A language may print either."""
    (message,) = messages(1)
    found = read([message[:64] + (b"%08X%08X" % (0xABC, crc32(message[64:])))])
    assert (found.headers.corrupted, found.verified) == (0, True)
    assert found.cpu_used_s == pytest.approx(0xABC * 1e-6)


def test_dashes_stand_for_what_is_not_said() -> None:
    """One message of which the program does not say it is enough: the sum is not known."""
    records = [long_record(message) for message in messages(3)]
    assert read([*records, long_record(messages(4)[3], cpu=UNSAID)]).cpu_used_s is None
    assert read([*records, long_record(messages(4)[3], checksum=UNSAID)]).verified is False


def test_a_wrong_checksum_is_a_corrupted_message() -> None:
    """The others count, and so does their CPU time alone."""
    records = [long_record(message) for message in messages(3)]
    records[1] = long_record(messages(3)[1], checksum=b"%08x" % 1)
    found = read(records)
    assert (found.headers.seq.tolist(), found.headers.corrupted) == ([0, 2], 1)
    assert found.cpu_used_s == pytest.approx(0.02)


def test_a_damaged_header_is_a_corrupted_message() -> None:
    """What its record says besides is not looked at."""
    records = [long_record(message) for message in messages(2)]
    records[0] = b"x" * LONG_BYTES
    found = read(records)
    assert (found.headers.seq.tolist(), found.headers.corrupted) == ([1], 1)
    assert found.cpu_used_s == pytest.approx(0.01)


def test_messages_of_different_sizes_are_not_verified() -> None:
    """Their bodies are not those of one size, whatever checksum is reported."""
    found = read([long_record(message, checksum=b"%08x" % 1) for message in messages(2)], size_is_known=False)
    assert (found.headers.corrupted, found.verified) == (0, False)
