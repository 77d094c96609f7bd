"""The operator's client, and with it the command, answer whatever goes wrong in one line."""

import socket
import threading

import pytest
from processes import DEADLINE

from frameworks.harmonicio.engine.cli import _address
from frameworks.harmonicio.engine.errors import ConfigError, UnreachableError
from frameworks.harmonicio.engine.operator_client import OperatorClient


@pytest.fixture
def answer():
    """Serves one HTTP answer with that body; returns the port."""
    threads, listeners = [], []

    def serve(body):
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(DEADLINE)

        def run():
            with listener.accept()[0] as sock:
                sock.recv(65536)
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        listeners.append(listener)
        return listener.getsockname()[1]

    yield serve
    for thread, listener in zip(threads, listeners, strict=True):
        thread.join(DEADLINE)
        listener.close()


@pytest.mark.parametrize("body", [b"<html>", b"", b"[1]", b"\xff", b"[" * 100_000], ids=range(5))
def test_an_answer_that_is_no_json_object_is_an_error(answer, body):
    """Something else than a master listens there."""
    with pytest.raises(UnreachableError, match="is no master") as caught:
        OperatorClient("127.0.0.1", answer(body)).status()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "token", "name"), [("a..b", "", "s"), ("127.0.0.1", "secret\n", "s"), ("127.0.0.1", "€", "s"),
                                ("127.0.0.1", "", "\udcff")], ids=["host", "line break", "no Latin-1", "name"]
)  # fmt: skip
def test_a_request_that_cannot_be_written_is_an_error(host, token, name):
    """The text does not have the token."""
    with pytest.raises(ConfigError, match="no request to") as caught:
        OperatorClient(host, 1, token).withdraw(name)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("port", ["²", "", "0", "65536", "9" * 5000])
def test_a_port_that_is_none_is_an_error(port):
    """Also a digit that is not decimal."""
    with pytest.raises(ConfigError, match="is not an address"):
        _address(f"host:{port}")
