"""Has HarmonicIO start a processing engine, sends one message to it, and stops it again."""

import os
import secrets
import sys
import time
from collections.abc import Callable
from typing import Any

from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.operator_client import OperatorClient

IMAGE = "python:builtins:len"
"""A function of one argument that does no harm; workers must allow it."""
PATIENCE = 30.0


def main() -> None:
    """Says in one line how long it took; ends with 1 when no engine did the work."""
    host, port, data_port = sys.argv[1:]
    seconds = _through(host, int(port), int(data_port), os.environ.get("HARMONICIO_CERTIFICATES") or None)
    print(f"a message went through an engine of {host}:{port} in {seconds:.2f} s")


def _through(host: str, port: int, data_port: int, tls: str | None) -> float:
    operator = OperatorClient(host, port, os.environ.get("HARMONICIO_TOKEN_OPERATOR", ""), tls=tls)
    stream, began = f"check-{secrets.token_hex(4)}", time.monotonic()
    operator.submit({"c_name": stream, "image": IMAGE, "num": 1})
    try:
        token = os.environ.get("HARMONICIO_TOKEN_CONNECTOR", "")
        with Connector(c_name=stream, host=host, port=data_port, token=token, tls=tls) as connector:
            connector.send(b"a message")
            connector.flush()
            _wait(
                lambda: _processed(operator.status(), stream) == 1, f"no engine of {stream} has processed the message"
            )
    finally:
        operator.withdraw(stream, purge=True)
    return time.monotonic() - began


def _processed(view: dict[str, Any], stream: str) -> int:
    return sum(int(row["stats"].get("processed", 0)) for row in view["pes"] if row["c_name"] == stream)


def _wait(until: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not until():
        if time.monotonic() > deadline:
            sys.exit(f"{otherwise} within {PATIENCE:g} s")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
