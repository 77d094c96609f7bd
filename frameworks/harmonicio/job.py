"""The PEs' function for the harness: the work that every framework does, with reports over a connection."""

import math
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct, convert

from bench.system.ipc import Channel, Ready
from bench.workload.delivery_counts import ProcessingReport, merge_reports
from bench.workload.processing import MessageProcessor, report_idle
from frameworks.harmonicio.engine.pe import Batch, of_batch
from frameworks.harmonicio.spans import FrameSpans
from frameworks.report_connection import ReportAddress, ReportHello

REPORT_INTERVAL_S = 0.1
"""Seconds between two reports at high rates; at low ones every batch is reported at once. A report costs 0.3
ms of CPU, of both sides together."""


class JobSettings(Struct, frozen=True):
    """The settings that the adapter gives a PE."""

    work: MessageProcessor
    most: int
    reports: ReportAddress


@of_batch
class Job:
    """A PE's function that processes batches and reports what it has done."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        given = convert(settings, JobSettings)
        self._work, self.most = given.work, given.most
        reports = given.reports
        self._channel: Channel[Ready] = Channel(
            socket.create_connection((reports.host, reports.port), timeout=10), Ready
        )
        self._channel.send(ReportHello(reports.secret))
        self._channel.send(Ready())
        self._reports: list[ProcessingReport] = []
        self._reported = 0.0
        self._spans = self._work.record_spans(f"PE {os.getpid()}")
        self.observer = FrameSpans(self._spans) if self._work.traced else None

    def __call__(self, batch: Batch) -> None:
        """Process a batch."""
        size = self._work.message_bytes
        if batch.message_bytes == size:
            matrix = np.frombuffer(batch.payload, dtype=np.uint8).reshape(len(batch), size)
            reports = self._work.process_matrix(matrix)
        else:
            reports = self._work.process([bytes(message) for message in batch])
        self._reports += reports
        self.idle()

    def idle(self) -> float:
        """Report what is unreported, unless the last report was less than REPORT_INTERVAL_S ago.

        Returns:
            Seconds until the next report is due; infinite when nothing is unreported.
        """
        if not self._reports:
            self._reports = report_idle(self._spans)
        left = self._reported + REPORT_INTERVAL_S - time.monotonic() if self._reports else math.inf
        if left > 0:
            return left
        self._report()
        return math.inf

    def close(self) -> None:
        """Report the rest."""
        self._report()

    def _report(self) -> None:
        reports, self._reports, self._reported = self._reports, [], time.monotonic()
        self._spans.end_wait()
        for report in merge_reports(reports):
            self._channel.send(report)
        self._spans.lap("reporting")
        self._spans.begin_wait()
