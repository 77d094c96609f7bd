"""The blocking connector keeps what `send` has taken."""

import contextlib
import time
from array import array

import pytest
from processes import wait_until
from stubs import Stub

from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.errors import MessageTooLongError, UnreachableError
from frameworks.harmonicio.engine.wire.control_messages import Leases
from frameworks.harmonicio.engine.wire.frame import FrameKind, encode_control

NOBODY = 1
"""A port at which nothing listens."""


def test_messages_that_linger_are_not_lost_by_a_flush_that_fails():
    """The next one fails as well, and does not say that all is acknowledged."""
    connector = Connector(c_name="s", port=NOBODY, timeout=0.2, linger=60.0)
    connector.send(b"first")
    for _ in range(2):
        with pytest.raises(UnreachableError):
            connector.flush()
    connector.close()


def test_a_message_that_could_not_be_sent_is_not_kept():
    """Its caller is told so, and may send it again; those before it wait."""
    connector = Connector(c_name="s", port=NOBODY, timeout=0.2, linger=0.05)
    connector.send(b"first")
    time.sleep(0.06)
    for _ in range(2):
        with pytest.raises(UnreachableError):
            connector.send(b"second")
    assert connector._lingering == [b"first"]
    connector.close()


def test_what_is_no_message_is_not_taken():
    """The next message is not delayed by it."""
    with contextlib.closing(Connector(c_name="s", port=NOBODY, linger=60.0)) as connector:
        for wrong in (5, "text"):
            with pytest.raises(TypeError):
                connector.send(wrong)
        connector.send(memoryview(array("d", [1.0, 2.0])))
        assert (connector._lingering_bytes, len(connector._lingering)) == (16, 1)


def test_only_the_message_that_is_too_long_is_dropped():
    """The one behind it is kept, and those before it are sent."""
    master, pe = Stub("master"), Stub("pe")
    with contextlib.ExitStack() as opened:
        for stub in (master, pe):
            opened.enter_context(stub.listener)
        connector = Connector(c_name="s", port=master.address.port, linger=60.0, batch_bytes=30, shared_memory=False)
        opened.enter_context(contextlib.closing(connector))
        feeder = connector.feeder
        feeder.step()
        opened.enter_context(master.welcome()).sendall(encode_control(FrameKind.LEASES, Leases(10.0, [pe.address])))
        wait_until(lambda: (feeder.step(), len(feeder.watched_sockets()) == 2)[1], "the connection")
        opened.enter_context(pe.welcome(max_body_bytes=10))
        wait_until(lambda: (feeder.step(), feeder.pes)[1], "the welcome")
        connector.send(b"first")
        connector.send(bytes(20))
        with pytest.raises(MessageTooLongError, match="a message of 20 bytes"):
            connector.send(b"third")
        assert (feeder.taken, connector._lingering, connector._lingering_bytes) == (1, [b"third"], 5)
