"""What is read from shared memory is what was sent, and memory that somebody may still read is not written again."""

import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frameworks.harmonicio.engine.errors import WireError
from frameworks.harmonicio.engine.wire.frame import REFERENCE, SHARED, Kind, header_bytes, seal, unshared
from frameworks.harmonicio.engine.wire.frame_reader import Buffers, Reader
from frameworks.harmonicio.engine.wire.shared_memory import Ring, Shared, opened

SIZE = 2**20


@pytest.fixture
def ring():
    """A small one."""
    one = Ring(SIZE)
    yield one
    one.close()


def frame_of(sealed):
    (frame,) = Reader(Buffers(), 2**20).feed(b"".join(sealed.buffers))
    return frame


def test_a_reader_sees_the_messages_where_they_lie(ring):
    """Without a copy of its own; the frame itself is small."""
    messages = [b"a" * 20_000, b"b" * 30_000]
    sealed = seal(messages, 1, 0, 0, ring)
    assert sum(map(len, sealed.buffers)) < 100
    frame = frame_of(sealed)
    frame.look_up(opened(ring.shared))
    assert [bytes(message) for message in frame.batch()] == messages
    again = frame_of(unshared(sealed, ring.read(sealed.region, sealed.size)))
    assert [bytes(message) for message in again.batch()] == messages


def test_small_frames_and_what_has_no_room_go_over_the_socket(ring):
    """As without any shared memory."""
    assert seal([b"small"], 1, 0, 0, ring).region is None
    assert seal([bytes(SIZE + 1)], 1, 0, 0, ring).region is None


@given(st.lists(st.integers(1, 200_000), min_size=1, max_size=30), st.randoms())
def test_regions_never_overlap_and_all_come_back(sizes, chance):
    """In whatever order they are given back."""
    ring, taken = Ring(SIZE), {}
    for size in sizes:
        start = ring.put([b"x" * size], size)
        if start is None and taken:
            gone = chance.choice(sorted(taken))
            ring.give_back(gone)
            del taken[gone]
        elif start is not None:
            taken[start] = size
    spans = sorted((start, start + size) for start, size in taken.items())
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    for start in list(taken):
        ring.give_back(start)
    assert ring.put([bytes(SIZE)], SIZE) == 0
    ring.close()


@pytest.mark.parametrize(
    "change",
    [{"boot": "another host"}, {"size": 5}, {"fd": 0}, {"pid": 2**22}, {"fd": -1}],
    ids=["boot", "size", "file", "process", "no file"],
)
def test_memory_that_is_not_what_it_should_be_is_not_opened(ring, change):
    """The connector is then sent nothing but a no."""
    values = {"boot": ring.shared.boot, "pid": os.getpid(), "fd": ring.shared.fd, "size": SIZE, **change}
    assert opened(Shared(**values)) is None


def test_memory_that_could_shrink_is_not_opened(ring):
    """A reader would be killed by it."""
    fd = os.memfd_create("shrinking")
    os.ftruncate(fd, SIZE)
    assert opened(Shared(ring.shared.boot, os.getpid(), fd, SIZE)) is None
    os.close(fd)


@pytest.mark.parametrize("reference", [(SIZE, 10, 0), (0, SIZE + 1, 0), (0, 0, 0), (2**63, 10, 0), (0, 10, 1)])
def test_a_frame_that_refers_to_something_else_is_an_error(ring, reference):
    """Of the connection."""
    body = REFERENCE.pack(*reference)
    frame = frame_of(seal([b"x" * 20], 1, 0, 0))
    frame.body = memoryview(body)
    with pytest.raises(WireError):
        frame.look_up(opened(ring.shared))
    assert header_bytes(Kind.DATA, 16, 0, flags=SHARED)
