"""The blocking connector keeps what `send` has taken."""

import time

import pytest

from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.errors import UnreachableError

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
