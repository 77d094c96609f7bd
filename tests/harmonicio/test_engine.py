"""The thread of a PE never waits for itself."""

import socket
import threading

from processes import DEADLINE

from frameworks.harmonicio.engine.pe.engine import Engine
from frameworks.harmonicio.engine.pe.function import Function

MANY = 10_000
"""More than a pair of sockets holds bytes of."""


def test_however_many_messages_are_put_in_at_once_nobody_waits():
    """The engine's own thread puts them in, too, and is the only one that would make room."""
    engine = Engine(
        socket.create_server(("127.0.0.1", 0)), Function("pe_functions:plain", {}), c_name="s", token="", compat=True,
        most_message=2**20,
    )  # fmt: skip

    def put():
        for _ in range(MANY):
            engine.put_raw(b"x")

    thread = threading.Thread(target=put, daemon=True)
    thread.start()
    thread.join(DEADLINE)
    assert not thread.is_alive()
    engine.stop()
    engine.run()
    assert engine.function.processed == MANY
