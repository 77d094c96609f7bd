"""Observations of a PE's engine for the observer of its function, if that has one."""

import time

from frameworks.harmonicio.engine.observer import Hop, Observer, ack_transfer, data_transfer
from frameworks.harmonicio.engine.pe.inbound import InboundConnection
from frameworks.harmonicio.engine.pe.poller import Poller
from frameworks.harmonicio.engine.wire.frame import Frame


class Observation:
    """Waits, frames and acknowledgements of one engine, told as they happen.

    Args:
        observer: of the function; None costs nothing.
    """

    def __init__(self, observer: Observer | None) -> None:
        self._observer, self._woke_at = observer, 0.0

    def poll(self, poller: Poller, timeout: float) -> None:
        """Poll the sockets, and tell for how long there was nothing to do."""
        observer = self._observer
        if observer is None:
            poller.poll(timeout)
            return
        began = time.monotonic()

        def end_wait() -> None:
            self._woke_at = time.monotonic()
            observer.waited(began, self._woke_at)

        poller.poll(timeout, end_wait)

    def receive(self, connection: InboundConnection, frame: Frame) -> None:
        """Tell of a frame; the first one of a poll is what ended the wait."""
        if self._observer is not None:
            at, self._woke_at = self._woke_at or time.monotonic(), 0.0
            self._observer.received(data_transfer(frame.header, _hop(connection)), at)

    def acknowledge(self, connection: InboundConnection) -> None:
        """Tell of what is being acknowledged."""
        if self._observer is not None:
            for session, first, count in connection.pending_ranges:
                self._observer.sent(ack_transfer(session, first, count, _hop(connection)), time.monotonic())


def _hop(connection: InboundConnection) -> Hop:
    return "from the queue" if connection.is_master else "direct"
