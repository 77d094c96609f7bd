"""What a PE runs for the harness: the work that every framework does, and its account over a connection to the harness."""

import contextlib
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct, convert

from bench.channel import Channel
from bench.order import Ready
from bench.tally import Report, merged
from bench.work import Work
from frameworks.harmonicio.pe import Batch, of_batch

TELL_EVERY = 0.05
"""Seconds between two accounts at high rates; at low ones every batch is told of at once."""


class Settings(Struct, frozen=True):
    """What the adapter tells a PE."""

    work: Work
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
        self._channel.tell(Hello(told.secret))
        self._channel.tell(Ready())
        self._reports: list[Report] = []
        self._told, self._lock = 0.0, threading.Lock()
        threading.Thread(target=self._tell_for_ever, daemon=True, name="reports").start()

    def __call__(self, batch: Batch) -> None:
        size = self._work.message_bytes
        if batch.message_bytes == size:
            matrix = np.frombuffer(batch.payload, dtype=np.uint8).reshape(len(batch), size)
            reports = self._work.done_in_place(matrix)
        else:
            reports = self._work.done([bytes(message) for message in batch])
        with self._lock:
            self._reports += reports
            if time.monotonic() >= self._told + TELL_EVERY:
                self._tell()

    def _tell_for_ever(self) -> None:
        """Tell what a pause has left untold."""
        with contextlib.suppress(OSError):  # the harness is gone, and will stop this PE
            while True:
                time.sleep(TELL_EVERY)
                with self._lock:
                    if self._reports and time.monotonic() >= self._told + TELL_EVERY:
                        self._tell()

    def _tell(self) -> None:
        reports, self._reports, self._told = self._reports, [], time.monotonic()
        for report in merged(reports):
            self._channel.tell(report)
