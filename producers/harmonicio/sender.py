"""The sender of a stream: HarmonicIO's connector."""

import time
from collections.abc import Sequence

from msgspec import convert

from bench.config.address import Address
from bench.errors import PluginError
from bench.plugins.protocols import Endpoint
from frameworks.harmonicio.cluster import read_token
from frameworks.harmonicio.engine.connector import Feeder, Options
from frameworks.harmonicio.engine.connector.blocking import wait_for_sockets
from frameworks.harmonicio.engine.errors import HarmonicError

CONNECT_TIMEOUT_S = 20.0
TIMEOUT_S = 0.01
"""Seconds that a full connector waits for credit, once it has said that it is full: the load counts them as its
source's."""
LOOK_INTERVAL_S = 0.01
"""Seconds between two looks for acknowledgements while nothing is sent: a load asks far more often, and CPU is scarce.
"""


class StreamSender:
    """A connector that never blocks."""

    def __init__(self) -> None:
        self._feeder: Feeder | None = None
        self._looked, self._full = 0.0, False

    def open(self, endpoint: Endpoint) -> None:
        """Connect to the endpoint."""
        host, port = Address.parse(endpoint.address)
        client = endpoint.client
        options = {
            "c_name": endpoint.name,
            "host": host,
            "port": port,
            "batch_bytes": client["batch"],
            "max_in_flight_bytes": client["max_in_flight"],
            "delivery": client["delivery"],
            "overflow": client["overflow"],
            "credit_timeout": client["credit_timeout"],
            "token": read_token(str(client["token_file"])),
            "tls": client["tls"] or None,
        }
        self._feeder = Feeder(convert(options, Options))
        deadline = time.monotonic() + CONNECT_TIMEOUT_S
        while not self._feeder.connected:
            self._step(self._feeder)
            if time.monotonic() > deadline:
                raise PluginError("stream", "open", f"no master answers at {endpoint.address}")
            time.sleep(0.005)

    def send(self, messages: Sequence[bytes]) -> int:
        """Offer messages; return how many were taken."""
        feeder = self._feeder
        assert feeder is not None, "open comes first"
        self._step(feeder)
        taken = feeder.offer(messages)
        if not taken and self._full:
            wait_for_sockets(feeder.watched_sockets(), TIMEOUT_S)
            self._step(feeder)
            taken = feeder.offer(messages)
        self._full = taken < len(messages)
        return taken

    def confirmed(self) -> tuple[int, int]:
        """Return (confirmed, failed) since `open`."""
        assert self._feeder is not None, "open comes first"
        if time.monotonic() >= self._looked + LOOK_INTERVAL_S:
            self._step(self._feeder)
        return self._feeder.acked, self._feeder.failed

    def close(self) -> None:
        """Disconnect; what is not confirmed is given up."""
        feeder, self._feeder = self._feeder, None
        if feeder is not None:
            feeder.close()

    def _step(self, feeder: Feeder) -> None:
        self._looked = time.monotonic()
        try:
            feeder.step(self._looked)
        except HarmonicError as problem:
            raise PluginError("stream", "send", str(problem)) from problem
