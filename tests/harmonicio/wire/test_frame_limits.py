"""No frame is larger than its receiver accepts, whatever the lengths of its messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import numbered

from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.errors import RefusedError
from frameworks.harmonicio.engine.wire.frame import EQUAL, encode_frame
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool, FrameReader

MAX_BYTES = 2**20


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60), st.integers(1, 2000))
def test_a_frame_of_different_lengths_has_as_many_messages_as_fit(sizes, most):
    """It has at least one, and the next frame begins with the first that did not fit."""
    messages, at = [bytes([index]) * size for index, size in enumerate(sizes)], 0
    while at < len(messages):
        sealed = encode_frame(messages[at:], 1, at, 0, max_bytes=most)
        (frame,) = FrameReader(BufferPool(), 2**20).feed(b"".join(sealed.buffers))
        assert [bytes(message) for message in frame.batch()] == messages[at : at + sealed.count]
        assert sealed.size <= most or sealed.count == 1 or frame.header.flags & EQUAL
        at += sealed.count


@pytest.fixture
def narrow(cluster):
    """A cluster that accepts frames of a megabyte, and a PE with a large credit because its messages are fast."""
    (cluster.folder / "master.yaml").write_text(f"message_bytes: {MAX_BYTES}\n")
    (cluster.folder / "worker.yaml").write_text(f"message_bytes: {MAX_BYTES}\nmaster_port: {cluster.port}\n")
    cluster.start_master("--config", str(cluster.folder / "master.yaml"))
    cluster.start_worker("--config", str(cluster.folder / "worker.yaml"))
    cluster.submit()
    cluster.wait_pes(1)
    with Connector(c_name="s", port=cluster.data_port, overflow="never") as connector:
        connector.send_many(numbered(0, 1000))
    return cluster


@pytest.mark.real
@pytest.mark.parametrize("overflow", ["never", "full"], ids=["to a PE", "to the queue"])
def test_large_messages_behind_a_small_one_arrive(narrow, overflow):
    """They are sent in separate frames; nothing is refused, nothing sent again."""
    stream = "s" if overflow == "never" else "nobody"
    with Connector(c_name=stream, port=narrow.data_port, overflow=overflow, shared_memory=False) as connector:
        connector.send_many([b"x" * 100, *numbered(1000, 100, size=MAX_BYTES - 1000)])
        connector.flush()
        assert (connector.feeder.acked, connector.feeder.redelivered) == (101, 0)
    assert "was closed" not in narrow.log()


@pytest.mark.real
@pytest.mark.parametrize("shared_memory", [True, False])
def test_a_message_that_is_longer_than_is_accepted_is_refused(narrow, shared_memory):
    """The connector refuses it in one line, and later messages arrive."""
    with Connector(c_name="s", port=narrow.data_port, overflow="never", shared_memory=shared_memory) as connector:
        with pytest.raises(RefusedError, match=f"{MAX_BYTES} at most"):
            connector.send_many([b"x" * 8, bytes(MAX_BYTES + 1)])
        connector.send(bytes(MAX_BYTES))
        connector.flush()
        assert connector.feeder.acked == 2
    assert "was closed" not in narrow.log()


@pytest.mark.real
def test_empty_messages_arrive(running_cluster):
    """They arrive beside others, and alone."""
    running_cluster.submit("Keep")
    running_cluster.wait_pes(1)
    with Connector(c_name="s", port=running_cluster.data_port) as connector:
        connector.send_many([b"", b"", b"x", b"", b"y"])
        connector.flush()
        assert (connector.feeder.acked, connector.feeder.redelivered) == (5, 0)
    assert sorted(file.read_bytes() for file in running_cluster.numbers.glob("*.message")) == [
        b"",
        b"",
        b"",
        b"x",
        b"y",
    ]
