"""The engine's thread never waits for itself."""

import socket
import threading

import pytest
from processes import DEADLINE

from frameworks.harmonicio.engine.pe.engine import Engine, EngineOptions
from frameworks.harmonicio.engine.pe.function import UserFunction
from frameworks.harmonicio.engine.wire.control_messages import Hello
from frameworks.harmonicio.engine.wire.frame import FrameKind, encode_control

MANY = 10_000
"""More than a pair of sockets holds bytes of."""


def test_an_engine_that_works_on_a_long_message_is_not_idle():
    """Its inbox is empty meanwhile, and it is long since a message was processed."""
    began, may_end, listener = threading.Event(), threading.Event(), socket.create_server(("127.0.0.1", 0))
    function = UserFunction("pe_functions:plain", {})
    function.run = lambda _: (began.set(), may_end.wait(DEADLINE), 0)[-1]
    engine = Engine(listener, function, EngineOptions(c_name="s", legacy_protocol=True, max_message_bytes=2**20))
    assert engine.state.idle_since() is not None
    thread = threading.Thread(target=engine.run, daemon=True)
    thread.start()
    engine.accept_raw_message(b"x")
    assert began.wait(DEADLINE)
    assert (engine.state.waiting, engine.state.idle_since()) == (0, None)
    may_end.set()
    engine.stop()
    thread.join(DEADLINE)
    assert engine.state.idle_since() is not None


def test_accepting_many_raw_messages_never_blocks():
    """Not even in the engine's own thread, which would have to empty the wake socket."""
    listener = socket.create_server(("127.0.0.1", 0))
    options = EngineOptions(c_name="s", legacy_protocol=True, max_message_bytes=2**20)
    engine = Engine(listener, UserFunction("pe_functions:plain", {}), options)

    def put():
        for _ in range(MANY):
            engine.accept_raw_message(b"x")

    thread = threading.Thread(target=put, daemon=True)
    thread.start()
    thread.join(DEADLINE)
    assert not thread.is_alive()
    engine.stop()
    engine.run()
    assert engine.function.processed == MANY


@pytest.mark.parametrize(("c_name", "token"), [("other", "right"), ("s", "wrong")])
def test_the_reason_of_a_refused_hello_is_logged(caplog, c_name, token):
    """The token is not."""
    listener = socket.create_server(("127.0.0.1", 0))
    options = EngineOptions(c_name="s", token="right", max_message_bytes=2**20)
    engine = Engine(listener, UserFunction("pe_functions:plain", {}), options)
    thread = threading.Thread(target=engine.run)
    thread.start()
    with socket.create_connection(listener.getsockname(), timeout=DEADLINE) as sock:
        sock.sendall(encode_control(FrameKind.HELLO, Hello("connector", c_name, 1, token)))
        while sock.recv(4096):
            pass
    engine.stop()
    thread.join(DEADLINE)
    reason = "token" if c_name == "s" else "this PE serves s, not other"
    assert f"a Hello was refused: {reason}" in caplog.text
    assert "wrong" not in caplog.text
