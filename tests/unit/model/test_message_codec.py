"""Messages are written and read back whole, and every change of a message is detected."""

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.model import message_codec
from bench.model.message_filler import MAX_TEXT_ENTROPY, make_filler

SIZES = (64, 65, 100, 1000, 8192, 100_003)


def written(size, count=5, entropy=0.75, first=0):
    writer = message_codec.MessageWriter(run=7, producer=3, size=size, cost=0.01, entropy=entropy)
    return writer.write(first, 1000 + np.arange(count) * 0.5, 1003.25)


@pytest.mark.parametrize("size", SIZES)
def test_a_message_has_exactly_the_requested_size(size):
    """Header and filler together fill the size to the byte."""
    assert {len(one) for one in written(size)} == {size}


@pytest.mark.parametrize("size", SIZES)
def test_what_was_written_is_read(size):
    """Run, producer, sequence number, times and cost come back."""
    headers = message_codec.read(written(size, first=2**40), size, make_filler(size, 0.75))
    assert headers.corrupted == 0
    assert headers.seq.tolist() == [2**40 + i for i in range(5)]
    assert set(headers.run) == {7}
    assert set(headers.producer) == {3}
    assert headers.due == pytest.approx(1000 + np.arange(5) * 0.5, abs=2e-6)
    assert headers.sent == pytest.approx([1003.25] * 5, abs=2e-6)
    assert headers.cost == pytest.approx([0.01] * 5)


@given(
    st.integers(0, 2**47),
    st.sampled_from(SIZES[:4]),
    st.lists(st.tuples(st.integers(0, 39), st.integers(0, 63), st.binary(max_size=1))),
)
def test_few_messages_are_coded_as_many_are(first, size, changes):
    """Messages are coded one by one or as an array; both detect the same corrupted messages."""
    many = written(size, count=40, first=first)
    writer = message_codec.MessageWriter(run=7, producer=3, size=size, cost=0.01, entropy=0.75)
    assert [writer.write(first + i, 1000 + np.array([i * 0.5]), 1003.25)[0] for i in range(40)] == many
    for index, offset, byte in changes:
        many[index] = many[index][:offset] + byte + many[index][offset + len(byte) :]
    expected = make_filler(size, 0.75)
    headers, singles = (
        message_codec.read(many, size, expected),
        [message_codec.read([one], size, expected) for one in many],
    )
    assert headers.corrupted == sum(single.corrupted for single in singles)
    for name in ("run", "producer", "seq", "due", "sent", "cost"):
        column = np.concatenate([getattr(single, name) for single in singles])
        assert column.dtype == getattr(headers, name).dtype
        assert column == pytest.approx(getattr(headers, name), abs=1e-9)


@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("size", [64, 100, 9000])
def test_only_lower_case_hexadecimal_digits_are_a_checksum(size, count):
    """Other characters do not count as 0, however many messages are read at once; nor do capital letters count."""
    good = written(size, count=4000)
    ends = [one[56:64] for one in good]
    zeros = next(place for place, end in enumerate(ends) if b"00" in (end[0:2], end[2:4], end[4:6], end[6:8]))
    at = 56 + next(place for place in (0, 2, 4, 6) if ends[zeros][place : place + 2] == b"00")
    letters = next(place for place, end in enumerate(ends) if end != end.upper())
    wrong = [
        good[zeros][:at] + b"\x00\xff" + good[zeros][at + 2 :],
        good[letters][:56] + ends[letters].upper() + good[letters][64:],
    ]
    for one in wrong:
        assert message_codec.read([one, *good[: count - 1]], size, make_filler(size, 0.75)).corrupted == 1


@given(entropy=st.floats(0, 1), size=st.integers(64, 3000))
def test_no_message_holds_a_newline(entropy, size):
    """A line-based source can carry every message."""
    assert b"\n" not in written(size, count=1, entropy=entropy)[0]


@given(entropy=st.floats(0, MAX_TEXT_ENTROPY))
def test_filler_up_to_the_text_limit_is_ascii(entropy):
    """A source that decodes text does not change it."""
    assert written(2000, count=1, entropy=entropy)[0].isascii()


@pytest.mark.parametrize("size", [64, 100, 9000])
def test_every_single_flipped_bit_is_detected(size):
    """Each bit of header and filler is verified."""
    one, expected = written(size, count=1)[0], make_filler(size, 0.75)
    places = range(min(size, 200) * 8)
    flipped = [one[: p // 8] + bytes([one[p // 8] ^ (1 << p % 8)]) + one[p // 8 + 1 :] for p in places]
    assert message_codec.read(flipped, size, expected).corrupted == len(flipped)


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_garbage_is_counted_as_corrupted(garbage):
    """Reading arbitrary bytes does not fail, and none of them pass as a message."""
    headers = message_codec.read(garbage, 100, make_filler(100, 0.75))
    assert (len(headers), headers.corrupted) == (0, len(garbage))


def test_a_message_of_another_size_is_corrupted():
    """A truncated message, or two messages joined, is not a message of this cell."""
    good = written(100, count=2)
    headers = message_codec.read([good[0][:-1], good[1], good[0] + good[1]], 100, make_filler(100, 0.75))
    assert (headers.seq.tolist(), headers.corrupted) == ([1], 2)


def test_a_size_below_the_header_is_refused():
    """A message of 63 bytes cannot hold a header."""
    with pytest.raises(ValueError, match="at least 64 bytes, not 63"):
        message_codec.MessageWriter(run=1, producer=0, size=63, cost=0, entropy=0)


@pytest.mark.parametrize("size", [1000, 10_000])
@pytest.mark.parametrize(("codec", "needed"), [("zstd", 0.75), ("gzip", 0.75), ("lz4", 1.0), ("snappy", 1.0)], ids=str)
def test_a_compressed_batch_is_not_smaller_than_the_entropy_of_its_messages(codec, needed, size):
    """At most a tenth is saved, in the headers: lz4 and snappy find no repetition, the others code 6 of 8 bits."""
    batch = b"".join(written(size, count=100))
    assert len(pa.Codec(codec).compress(batch)) >= 0.9 * needed * len(batch)


@pytest.mark.parametrize("count", [2, 40, 6000])
@pytest.mark.parametrize("size", [100, 500, 1000])
def test_a_filler_of_another_message_is_detected(size, count):
    """The header's number determines the filler: fillers of two neighbours that are swapped are both wrong."""
    batch = written(size, count=count)
    batch[0], batch[1] = batch[0][:64] + batch[1][64:], batch[1][:64] + batch[0][64:]
    headers = message_codec.read(batch, size, make_filler(size, 0.75))
    assert (headers.corrupted, headers.seq.tolist()) == (2, list(range(2, count)))


@pytest.mark.parametrize("order", ["partitions", "reversed", "shuffled"])
@pytest.mark.parametrize("size", [64, 100, 500, 1000, 10_000])
def test_messages_in_any_order_are_verified(size, order):
    """Batches of a partition have every third message; producers may interleave."""
    batch = written(size, count=3000 if size < 10_000 else 300)
    of_order = {"partitions": batch[1::3], "reversed": batch[::-1], "shuffled": random.Random(1).sample(batch, 50)}
    headers = message_codec.read(of_order[order], size, make_filler(size, 0.75))
    assert (headers.corrupted, len(headers)) == (0, len(of_order[order]))


@pytest.mark.parametrize("cost", [0.0, 4e-7, 1e-6, 0.1, 20.0])
def test_any_cost_comes_back(cost):
    """Fractions of a microsecond are not rounded away, and tens of seconds have space."""
    for count in (1, 40):
        batch = message_codec.MessageWriter(run=1, producer=0, size=64, cost=cost, entropy=0).write(
            0, np.zeros(count), 0.0
        )
        assert message_codec.read(batch, 64, make_filler(64, 0)).cost == pytest.approx(cost, rel=1e-6)
