"""A PE calls the user's function with a batch of what waits, where messages can be merged."""

import math
from collections import deque

from pe_functions import Busy

from frameworks.harmonicio.engine.pe.batch_merging import MAX_MERGED_BYTES, merge_batches, take_mergeable
from frameworks.harmonicio.engine.pe.function import UserFunction
from frameworks.harmonicio.engine.wire.frame import Batch, encode_frame
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool, FrameReader


def frames(*batches, first=0):
    """Return the frames of these batches, one behind the other."""
    found = []
    for batch in batches:
        found += FrameReader(BufferPool(), 2**20).feed(b"".join(encode_frame(batch, 1, first, 0).buffers))
        first += len(batch)
    return found


def taken(*batches, most=100):
    """Return how many frames are taken at first, and how many messages each merged batch has."""
    inbox = deque(("connection", frame) for frame in frames(*batches))
    connection, found = take_mergeable(inbox, most)
    assert (connection, len(found) + len(inbox)) == ("connection", len(batches))
    return len(found), [len(part) for part in merge_batches([frame.batch() for frame in found])]


def test_small_frames_that_wait_are_merged():
    """They become one batch in their order."""
    assert taken([b"ab"], [b"cd", b"ef"], [b"gh"]) == (3, [4])
    parts = merge_batches([frame.batch() for frame in frames([b"ab"], [b"cd", b"ef"])])
    assert [bytes(message) for message in parts[0]] == [b"ab", b"cd", b"ef"]


def test_frames_that_differ_are_not_merged():
    """Other lengths, large frames, other connections and too many messages stay separate."""
    assert taken([b"ab"], [b"c"]) == (1, [1])
    assert taken([b"a", b"bcd"], [b"ef"]) == (1, [2])
    assert taken([bytes(MAX_MERGED_BYTES)], [bytes(MAX_MERGED_BYTES)]) == (1, [1])
    assert taken([b"ab"], [b"cd"], most=1) == (1, [1])
    inbox = deque(zip(("one", "other"), frames([b"ab"], [b"cd"]), strict=True))
    assert len(take_mergeable(inbox, 100)[1]) == 1


def test_a_function_may_have_idle_and_close():
    """`idle` returns when it wants the next call, and `close` is called at the end."""
    Busy.calls = []
    function = UserFunction("pe_functions:Busy", {"wish": 0.5})
    function.run(Batch(memoryview(b"abcd"), None, 2))
    assert function.idle() == 0.5
    function.close()
    assert Busy.calls == [2, "idle", "close"]
    assert UserFunction("pe_functions:Busy", {}).idle() == UserFunction("pe_functions:plain", {}).idle() == math.inf


def test_an_idle_that_raises_is_not_called_again():
    """The PE goes on."""
    Busy.calls = []
    function = UserFunction("pe_functions:Busy", {"wish": "raise"})
    assert [function.idle(), function.idle()] == [math.inf, math.inf]
    assert Busy.calls == ["idle"]


def test_a_cancelled_error_does_not_end_the_pe():
    """Its message has failed, as with any exception."""
    assert UserFunction("pe_functions:cancel", {}).run(Batch(memoryview(b"x"), None, 1)) == 1
