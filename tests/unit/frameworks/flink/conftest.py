"""A server on loopback that gives prepared answers, whatever it is asked."""

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Return a function that serves answers, one a connection and the last one for ever, and returns host:port."""
    with ExitStack() as opened:

        def start(*answers: bytes) -> str:
            left = list(answers)

            class Connection(socketserver.StreamRequestHandler):
                def handle(self) -> None:
                    while self.rfile.readline().strip():  # to the end of the headers
                        pass
                    self.wfile.write(left.pop(0) if len(left) > 1 else left[0])

            server = opened.enter_context(socketserver.TCPServer(("127.0.0.1", 0), Connection))
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            opened.callback(thread.join)
            opened.callback(server.shutdown)
            return f"127.0.0.1:{server.server_address[1]}"

        yield start
