"""The sender of a stream: HarmonicIO's connector."""

import time
from collections.abc import Sequence

from msgspec import convert

from bench.config.address import Address
from bench.errors import PluginError
from bench.plugins.protocols import Endpoint
from bench.workload.span_recorder import NoRecorder, SpanRecorder
from frameworks.harmonicio.cluster import read_token
from frameworks.harmonicio.engine.connector import Feeder, Options
from frameworks.harmonicio.engine.connector.blocking import wait_for_sockets
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.spans import FrameSpans

CONNECT_TIMEOUT_S = 20.0
TIMEOUT_S = 0.01
"""Seconds that a full connector waits for credit, once it has said that it is full: the load counts them as its
source's."""
LOOK_INTERVAL_S = 0.01
"""Seconds between two looks for acknowledgements while nothing is sent: a load asks far more often, and CPU is scarce.
"""


class StreamSender:
    """A connector that never blocks.

    In a trace it waits from when it had no credit until an acknowledgement comes, and idles while it has no messages.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._looked, self._full, self._closed = 0.0, False, False
        self._spans: SpanRecorder | NoRecorder = NoRecorder()
        self._waits = False
        self._feeder = Feeder(_options(endpoint))
        try:
            self._connect(endpoint)
        except PluginError:
            self.close()
            raise

    def send(self, messages: Sequence[bytes]) -> int:
        """Offer messages; return how many were taken."""
        self._step()
        taken = self._feeder.offer(messages)
        if not taken and self._full:
            self._spans.lap("serialize")
            wait_for_sockets(self._feeder.watched_sockets(), TIMEOUT_S)
            self._waits = True
            self._step()
            taken = self._feeder.offer(messages)
        self._full = self._waits = taken < len(messages)
        self._spans.lap("serialize")
        return taken

    def confirmed(self) -> tuple[int, int]:
        """Return (confirmed, failed) so far."""
        if time.monotonic() >= self._looked + LOOK_INTERVAL_S:
            self._step()
        return self._feeder.acked, self._feeder.failed

    def record(self, spans: SpanRecorder | NoRecorder) -> None:
        """Record into these spans from now on, instead of earlier ones."""
        self._spans = spans
        self._feeder.observer = FrameSpans(spans) if isinstance(spans, SpanRecorder) else None

    def close(self) -> None:
        """Disconnect; what is not confirmed is given up."""
        if not self._closed:
            self._closed = True
            self._feeder.close()

    def _connect(self, endpoint: Endpoint) -> None:
        deadline = time.monotonic() + CONNECT_TIMEOUT_S
        while not self._feeder.connected:
            self._step()
            if time.monotonic() > deadline:
                raise PluginError("stream", "open", f"no master answers at {endpoint.address}")
            time.sleep(0.005)

    def _step(self) -> None:
        self._looked, acked = time.monotonic(), self._feeder.acked
        self._spans.lap("waiting" if self._waits else "idle(source)", at=self._looked)
        try:
            self._feeder.step(self._looked)
        except HarmonicError as problem:
            raise PluginError("stream", "send", str(problem)) from problem
        self._waits = self._waits and self._feeder.acked == acked


def _options(endpoint: Endpoint) -> Options:
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
    return convert(options, Options)
