"""Check of HarmonicIO: starts a processing engine, sends it one message, and stops it again."""

import os
import secrets
import sys
import time
from collections.abc import Callable
from typing import Any

from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.operator_client import OperatorClient

IMAGE = "python:builtins:len"
"""A harmless function of one argument. The workers must allow this image."""
PROCESSING_TIMEOUT_S = 30.0


def main() -> None:
    """Print how long the message took; exit with 1 if no engine processed it."""
    host, port, data_port = sys.argv[1:]
    seconds = _send_message(host, int(port), int(data_port), os.environ.get("HARMONICIO_CERTIFICATES") or None)
    print(f"a message went through an engine of {host}:{port} in {seconds:.2f} s")


def _send_message(host: str, port: int, data_port: int, tls: str | None) -> float:
    operator = OperatorClient(host, port, os.environ.get("HARMONICIO_TOKEN_OPERATOR", ""), tls=tls)
    stream, started = f"check-{secrets.token_hex(4)}", time.monotonic()
    operator.submit({"c_name": stream, "image": IMAGE, "num": 1})
    try:
        token = os.environ.get("HARMONICIO_TOKEN_CONNECTOR", "")
        with Connector(c_name=stream, host=host, port=data_port, token=token, tls=tls) as connector:
            connector.send(b"a message")
            connector.flush()
            _wait_until(
                lambda: _processed(operator.status(), stream) == 1, f"no engine of {stream} has processed the message"
            )
    finally:
        operator.withdraw(stream, purge=True)
    return time.monotonic() - started


def _processed(status: dict[str, Any], stream: str) -> int:
    return sum(int(pe["stats"].get("processed", 0)) for pe in status["pes"] if pe["c_name"] == stream)


def _wait_until(condition: Callable[[], bool], error: str) -> None:
    deadline = time.monotonic() + PROCESSING_TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{error} within {PROCESSING_TIMEOUT_S:g} s")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
