"""Shared memory gives back the bytes that were written, and memory that may still be read is not overwritten."""

import os
import subprocess
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frameworks.harmonicio.engine.errors import ProtocolError
from frameworks.harmonicio.engine.wire.frame import (
    REFERENCE,
    SHARED,
    FrameKind,
    encode_frame,
    encode_header,
    with_inline_body,
)
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool, FrameReader
from frameworks.harmonicio.engine.wire.shared_memory import SharedMemory, SharedMemoryHandle, open_shared_memory

SIZE = 2**20


@pytest.fixture
def memory():
    """Shared memory of one megabyte."""
    one = SharedMemory(SIZE)
    yield one
    one.close()


def frame_of(sealed):
    (frame,) = FrameReader(BufferPool(), 2**20).feed(b"".join(sealed.buffers))
    return frame


def test_a_reader_reads_messages_in_place(memory):
    """The frame itself is small."""
    messages = [b"a" * 20_000, b"b" * 30_000]
    sealed = encode_frame(messages, 1, 0, 0, memory)
    assert sum(map(len, sealed.buffers)) < 100
    frame = frame_of(sealed)
    frame.resolve_shared_body(open_shared_memory(memory.handle))
    assert [bytes(message) for message in frame.batch()] == messages
    again = frame_of(with_inline_body(sealed, memory.read(sealed.region, sealed.size)))
    assert [bytes(message) for message in again.batch()] == messages


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_cannot_read_the_memory(memory):
    """Not by the path that its handle stands for, whatever that user knows."""
    path = f"/proc/{memory.handle.pid}/fd/{memory.handle.fd}"
    assert subprocess.run(["head", "-c", "1", path], check=False, capture_output=True).returncode == 0
    tried = subprocess.run(["head", "-c", "1", path], check=False, capture_output=True, user=65534, group=65534)
    assert (tried.returncode, tried.stdout) == (1, b"")


def test_small_frames_and_those_that_do_not_fit_go_over_the_socket(memory):
    """They are encoded as without shared memory."""
    assert encode_frame([b"small"], 1, 0, 0, memory).region is None
    assert encode_frame([bytes(SIZE + 1)], 1, 0, 0, memory).region is None


@given(st.lists(st.integers(1, 200_000), min_size=1, max_size=30), st.randoms())
def test_regions_never_overlap_and_all_are_freed(sizes, chance):
    """This holds for every order of freeing."""
    memory, taken = SharedMemory(SIZE), {}
    for size in sizes:
        start = memory.put([b"x" * size], size)
        if start is None and taken:
            gone = chance.choice(sorted(taken))
            memory.give_back(gone)
            del taken[gone]
        elif start is not None:
            taken[start] = size
    spans = sorted((start, start + size) for start, size in taken.items())
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    for start in list(taken):
        memory.give_back(start)
    assert memory.put([bytes(SIZE)], SIZE) == 0
    memory.close()


@pytest.mark.parametrize(
    "change",
    [{"boot": "another host"}, {"size": 5}, {"fd": 0}, {"pid": 2**22}, {"fd": -1}],
    ids=["boot", "size", "file", "process", "no file"],
)
def test_memory_that_does_not_match_its_handle_is_not_opened(memory, change):
    """The Welcome then says that memory is not shared."""
    values = {"boot": memory.handle.boot, "pid": os.getpid(), "fd": memory.handle.fd, "size": SIZE, **change}
    assert open_shared_memory(SharedMemoryHandle(**values)) is None


def test_memory_that_could_shrink_is_not_opened(memory):
    """A reader of shrunk memory would be killed."""
    fd = os.memfd_create("shrinking")
    os.ftruncate(fd, SIZE)
    assert open_shared_memory(SharedMemoryHandle(memory.handle.boot, os.getpid(), fd, SIZE)) is None
    os.close(fd)


@pytest.mark.parametrize("reference", [(SIZE, 10, 0), (0, SIZE + 1, 0), (0, 0, 0), (2**63, 10, 0), (0, 10, 1)])
def test_an_invalid_reference_is_a_protocol_error(memory, reference):
    """The connection is closed then."""
    body = REFERENCE.pack(*reference)
    frame = frame_of(encode_frame([b"x" * 20], 1, 0, 0))
    frame.body = memoryview(body)
    with pytest.raises(ProtocolError):
        frame.resolve_shared_body(open_shared_memory(memory.handle))
    assert encode_header(FrameKind.DATA, 16, 0, flags=SHARED)
