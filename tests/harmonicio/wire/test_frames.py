"""Frames arrive as they were sent, in pieces of any size; invalid data is an error of its connection only."""

import socket
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frameworks.harmonicio.engine.connector.low_watermark import LowWatermark
from frameworks.harmonicio.engine.errors import ProtocolError
from frameworks.harmonicio.engine.wire.connection import FrameConnection
from frameworks.harmonicio.engine.wire.control_messages import Hello
from frameworks.harmonicio.engine.wire.frame import (
    FrameKind,
    as_buffers,
    decode_ack,
    encode_ack,
    encode_control,
    encode_frame,
)
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool, FrameReader
from frameworks.harmonicio.engine.wire.handshake import Handshake
from frameworks.harmonicio.engine.wire.literal import MAX_BYTES, read_literal, write_literal
from frameworks.harmonicio.engine.wire.sequence_ranges import SequenceRanges

MESSAGES = st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=20)


def fed(data, piece, most=2**20):
    """Return the frames in bytes that arrive in pieces."""
    reader, frames = FrameReader(BufferPool(), most), []
    for start in range(0, len(data), piece):
        frames += reader.feed(data[start : start + piece])
    return frames


@given(batches=st.lists(MESSAGES, min_size=1, max_size=5), piece=st.integers(1, 2000))
def test_batches_arrive_as_they_were_sent(batches, piece):
    """The pieces have any length."""
    first, data = 0, b""
    for messages in batches:
        data += b"".join(encode_frame(messages, 7, first, 0).buffers)
        first += len(messages)
    frames = fed(data, piece)
    assert [[bytes(message) for message in frame.batch()] for frame in frames] == batches
    assert [frame.header.first for frame in frames] == [sum(map(len, batches[:index])) for index in range(len(batches))]


@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=30), cut=st.data())
def test_a_slice_of_a_batch_has_those_messages(sizes, cut):
    """They are selected by their index."""
    messages = [bytes([index]) * size for index, size in enumerate(sizes)]
    (frame,) = fed(b"".join(encode_frame(messages, 1, 0, 0).buffers), 10_000)
    first = cut.draw(st.integers(0, len(sizes) - 1))
    last = cut.draw(st.integers(first + 1, len(sizes)))
    assert [bytes(message) for message in frame.batch().slice(first, last)] == messages[first:last]


@given(position=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_changed_bit_is_detected(position, bit):
    """Its position does not matter."""
    data = bytearray(b"".join(encode_frame([b"x" * 40, b"y" * 30], 1, 0, 0).buffers))
    data[position % len(data)] ^= 1 << bit
    with pytest.raises(ProtocolError):
        assert not fed(bytes(data) + bytes(4096), 64)[0]


def test_a_longer_body_than_is_accepted_is_refused_before_it_is_read():
    """No memory is allocated for it."""
    with pytest.raises(ProtocolError, match="at most 100"):
        fed(b"".join(encode_frame([b"x" * 101], 1, 0, 0).buffers)[:60], 60, most=100)


def test_large_messages_pass_a_non_blocking_socket():
    """They are sent without a copy, and received into one buffer."""
    one, other = socket.socketpair()
    sender, receiver = FrameConnection(one, BufferPool(), 2**24), FrameConnection(other, BufferPool(), 2**24)
    message = bytes(range(256)) * 20_000
    sender.send(encode_frame([message], 1, 0, 0).buffers)
    frames = []
    while not frames:
        sender.flush()
        frames = receiver.read()
    assert bytes(frames[0].batch()[0]) == message
    sender.close()
    with pytest.raises(EOFError):
        receiver.read()
    receiver.close()


def test_a_buffer_is_reused_only_without_references():
    """A view that was kept keeps its content."""
    buffers = BufferPool()
    reader = FrameReader(buffers, 2**20)
    data = b"".join(encode_frame([b"a" * 5000], 1, 0, 0).buffers)
    (kept,) = reader.feed(data)
    view = kept.batch()[0]
    buffers.give_back(kept)
    (other,) = reader.feed(b"".join(encode_frame([b"b" * 5000], 1, 1, 0).buffers))
    assert bytes(view) == b"a" * 5000
    first = id(other.buffer)
    buffers.give_back(other)
    (third,) = reader.feed(data)
    assert id(third.buffer) == first


def test_acks_and_control_frames_are_decoded_as_they_were_encoded():
    """A body of another type is a protocol error."""
    (frame,) = fed(encode_ack(9, 5, 3, failed=1, credit=(10, 1000)), 100)
    assert (frame.header.kind, frame.header.session, frame.header.first, frame.header.count) == (FrameKind.ACK, 9, 5, 3)
    assert decode_ack(frame) == (1, 10, 1000)
    (frame,) = fed(encode_control(FrameKind.HELLO, Hello("connector", "img", 3, "t")), 7)
    assert frame.decode_body(Hello) == Hello("connector", "img", 3, "t")
    with pytest.raises(ProtocolError, match="cannot be read"):
        fed(encode_control(FrameKind.HELLO), 100)[0].decode_body(Hello)


@pytest.mark.parametrize(
    ("data", "protocol"),
    [(encode_control(FrameKind.RENEW), "frames"), (b"hello", "raw"), (b"HIO4" + bytes(100), "raw"), (b"HIO", "raw")],
)
def test_a_handshake_tells_legacy_messages_from_frames(data, protocol):
    """It recognises a legacy message that begins with the magic, too."""
    one, other = socket.socketpair()
    handshake = Handshake(other, 1000)
    for byte in data:
        one.send(bytes([byte]))
        handshake.receive()
    one.close()
    assert handshake.receive() == protocol if protocol == "raw" else handshake.data
    other.close()


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 15)), max_size=30), st.integers(0, 50))
def test_sequence_ranges_are_a_set_that_does_not_grow(ranges, low_watermark):
    """They answer like a set of numbers, and keep disjoint ranges."""
    added, numbers = SequenceRanges(), set()
    for first, count in ranges:
        added.add(first, count)
        numbers |= set(range(first, first + count))
    added.advance_low_watermark(low_watermark)
    numbers |= set(range(low_watermark))
    missing = {number for first, end in added.missing(0, 100) for number in range(first, end)}
    assert missing == set(range(100)) - numbers
    assert len(added) <= len(ranges)
    added.advance_low_watermark(1000)
    assert len(added) == 0


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, "x"]}', "{'a': [1, 2.5, 'x']}"])
def test_texts_of_both_eras_are_read(text):
    """JSON and Python literals give the same value."""
    assert read_literal(text) == {"a": [1, 2.5, "x"]}


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "[" * 100 + "]" * 100, "x" * (MAX_BYTES + 1), "-" * 1000 + "1", "{'a': ", b"\xff", "1 or 2"],
)
def test_other_texts_are_refused(text):
    """They are neither evaluated nor parsed with deep recursion."""
    with pytest.raises(ProtocolError):
        read_literal(text)


def test_written_text_is_json_and_a_literal_at_once():
    """It has no null and no truth values."""
    assert write_literal({"a": None, "b": True, "c": [1, "x"]}) == '{"a": "None", "b": 1, "c": [1, "x"]}'


@given(st.lists(st.integers(1, 5), max_size=40), st.randoms())
def test_the_low_watermark_is_the_oldest_frame_that_is_not_settled(counts, chance):
    """This holds for every order of settling."""
    low_watermark, open_firsts, beyond = LowWatermark(), set(), 0
    for count in counts:
        low_watermark.add(beyond)
        open_firsts.add(beyond)
        beyond += count
        for first in chance.sample(sorted(open_firsts), chance.randrange(len(open_firsts) + 1)):
            low_watermark.settle(first)
            open_firsts.discard(first)
        assert low_watermark.lowest(beyond) == min(open_firsts, default=beyond)


def test_a_low_watermark_above_the_first_message_is_an_error():
    """Its receiver would take the messages for old ones, and acknowledge and drop them."""
    assert fed(b"".join(encode_frame([b"x"], 1, 5, 5).buffers), 100)
    with pytest.raises(ProtocolError, match="a low watermark of 6 above the first message, 5"):
        fed(b"".join(encode_frame([b"x"], 1, 5, 6).buffers), 100)


def test_the_length_of_a_buffer_is_its_number_of_bytes():
    """Whatever its items are; what has no buffer is no message."""
    numbers = array("d", [1.0, 2.0])
    buffers = [b"x", bytearray(b"y"), memoryview(numbers), memoryview(b"abcd")[::2], memoryview(array("d"))]
    assert [len(one) for one in as_buffers(buffers)] == [1, 1, 16, 2, 0]
    (frame,) = fed(b"".join(encode_frame(as_buffers([memoryview(numbers)]), 1, 0, 0).buffers), 100)
    assert bytes(frame.body) == numbers.tobytes()
    for wrong in (5, "text", None):
        with pytest.raises(TypeError):
            as_buffers([wrong])
