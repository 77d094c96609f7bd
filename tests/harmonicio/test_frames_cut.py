"""No frame is larger than its receiver accepts, whatever the lengths of its messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import numbered

from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.errors import Refused
from frameworks.harmonicio.engine.wire.frame import EQUAL, seal
from frameworks.harmonicio.engine.wire.frame_reader import Buffers, Reader

MOST = 2**20


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60), st.integers(1, 2000))
def test_a_frame_of_different_lengths_has_as_many_messages_as_fit(sizes, most):
    """One at least, and none is left out: those that are cut off begin the next."""
    messages, at = [bytes([index]) * size for index, size in enumerate(sizes)], 0
    while at < len(messages):
        sealed = seal(messages[at:], 1, at, 0, most_bytes=most)
        (frame,) = Reader(Buffers(), 2**20).feed(b"".join(sealed.buffers))
        assert [bytes(message) for message in frame.batch()] == messages[at : at + sealed.count]
        assert sealed.size <= most or sealed.count == 1 or frame.header.flags & EQUAL
        at += sealed.count


@pytest.fixture
def narrow(stand):
    """A system that accepts frames of a megabyte, and a PE that has learnt that messages are fast."""
    (stand.folder / "master.yaml").write_text(f"message_bytes: {MOST}\n")
    (stand.folder / "worker.yaml").write_text(f"message_bytes: {MOST}\nmaster_port: {stand.port}\n")
    stand.start_master("--config", str(stand.folder / "master.yaml"))
    stand.start_worker("--config", str(stand.folder / "worker.yaml"))
    stand.submit()
    stand.wait_pes(1)
    with Connector(c_name="s", port=stand.data_port, overflow="never") as connector:
        connector.send_many(numbered(0, 1000))
    return stand


@pytest.mark.real
@pytest.mark.parametrize("overflow", ["never", "full"], ids=["to a PE", "to the queue"])
def test_large_messages_behind_a_small_one_arrive(narrow, overflow):
    """In frames of their own; nothing is refused, nothing sent again."""
    stream = "s" if overflow == "never" else "nobody"
    with Connector(c_name=stream, port=narrow.data_port, overflow=overflow, shared_memory=False) as connector:
        connector.send_many([b"x" * 100, *numbered(1000, 100, size=MOST - 1000)])
        connector.flush()
        assert (connector.feeder.acked, connector.feeder.redelivered) == (101, 0)
    assert "was closed" not in narrow.log()


@pytest.mark.real
@pytest.mark.parametrize("shared_memory", [True, False])
def test_a_message_that_is_longer_than_is_accepted_is_refused(narrow, shared_memory):
    """In one line, by the connector; what is sent afterwards arrives."""
    with Connector(c_name="s", port=narrow.data_port, overflow="never", shared_memory=shared_memory) as connector:
        with pytest.raises(Refused, match=f"{MOST} at most"):
            connector.send_many([b"x" * 8, bytes(MOST + 1)])
        connector.send(bytes(MOST))
        connector.flush()
        assert connector.feeder.acked == 2
    assert "was closed" not in narrow.log()


@pytest.mark.real
def test_empty_messages_arrive(standing):
    """Beside others, and by themselves."""
    standing.submit("Keep")
    standing.wait_pes(1)
    with Connector(c_name="s", port=standing.data_port) as connector:
        connector.send_many([b"", b"", b"x", b"", b"y"])
        connector.flush()
        assert (connector.feeder.acked, connector.feeder.redelivered) == (5, 0)
    assert sorted(file.read_bytes() for file in standing.numbers.glob("*.message")) == [b"", b"", b"", b"x", b"y"]
