"""What a PE runs for the harness: the work that every framework does, and its account over a connection to the harness."""

import math
import socket
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct, convert

from bench.system.ipc import Channel, Ready
from bench.workload.delivery_counts import ProcessingReport, merge_reports
from bench.workload.processing import MessageProcessor
from frameworks.harmonicio.engine.pe import Batch, of_batch

TELL_EVERY = 0.1
"""Seconds between two accounts at high rates; at low ones every batch is told of at once. Each costs 0.3 ms of both sides' CPU."""


class Settings(Struct, frozen=True):
    """What the adapter tells a PE."""

    work: MessageProcessor
    most: int
    host: str
    port: int
    secret: str


class Hello(Struct, frozen=True, tag="secret"):
    """The first line to the harness."""

    secret: str


@of_batch
class Job:
    """Works on batches, and tells what it has done."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        told = convert(settings, Settings)
        self._work, self.most = told.work, told.most
        self._channel: Channel[Ready] = Channel(socket.create_connection((told.host, told.port), timeout=10), Ready)
        self._channel.send(Hello(told.secret))
        self._channel.send(Ready())
        self._reports: list[ProcessingReport] = []
        self._told = 0.0

    def __call__(self, batch: Batch) -> None:
        size = self._work.message_bytes
        if batch.message_bytes == size:
            matrix = np.frombuffer(batch.payload, dtype=np.uint8).reshape(len(batch), size)
            reports = self._work.process_matrix(matrix)
        else:
            reports = self._work.process([bytes(message) for message in batch])
        self._reports += reports
        self.idle()

    def idle(self) -> float:
        """Tell what is untold, unless the last account is too young; in how many seconds it is not any more."""
        young = self._told + TELL_EVERY - time.monotonic() if self._reports else math.inf
        if young > 0:
            return young
        self._tell()
        return math.inf

    def close(self) -> None:
        """Tell the rest."""
        self._tell()

    def _tell(self) -> None:
        reports, self._reports, self._told = self._reports, [], time.monotonic()
        for report in merge_reports(reports):
            self._channel.send(report)
