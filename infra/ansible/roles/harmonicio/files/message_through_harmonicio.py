"""Check of HarmonicIO: starts a processing engine, sends it one message, and stops it again."""

import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.plugins.site_file import read_site_file
from frameworks.harmonicio.cluster import SiteHarmonicioCluster, read_token
from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.site import HARMONICIO_SITE

IMAGE = "python:builtins:len"
"""A harmless function of one argument. The workers must allow this image."""
PROCESSING_TIMEOUT_S = 30.0


def main() -> None:
    """Print how long the message took; exit with 1 if no engine processed it."""
    site = HARMONICIO_SITE.read(read_site_file(Path(sys.argv[1])))
    if site is None:
        sys.exit("the site has no HarmonicIO")
    print(f"a message went through an engine of {site.master} in {_send_message(SiteHarmonicioCluster(site)):.2f} s")


def _send_message(cluster: SiteHarmonicioCluster) -> float:
    operator, reach = cluster.operator, cluster.reach
    stream, started = f"check-{secrets.token_hex(4)}", time.monotonic()
    operator.submit({"c_name": stream, "image": IMAGE, "num": 1})
    try:
        token = read_token(reach.token_file)
        with Connector(
            c_name=stream, host=reach.data_host, port=reach.data_port, token=token, tls=reach.tls
        ) as connector:
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
