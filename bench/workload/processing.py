"""The one function that every framework runs on every message: read it, verify it, burn its CPU cost, account for it."""

import dataclasses
import math
import time
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from bench.analysis.histogram import sparse_of
from bench.model import message_codec
from bench.model.message_codec import Bytes, Clock, Headers
from bench.model.message_keys import KeyDrawing
from bench.model.message_sizes import SizeDrawing
from bench.system import clock, procfs
from bench.workload.delivery_counts import ProcessingReport, sums_of


class Work(Struct, frozen=True):
    """What a message must look like; all that a framework has to know of it."""

    message_bytes: int
    entropy: float
    clock: Clock = Clock()
    """that is in the messages; a machine that does not know how far its own is off reports no latencies but processing"""
    sizes: SizeDrawing | None = None
    """where messages differ in size: which has which; `message_bytes` is then their mean"""
    keys: KeyDrawing | None = None
    """where messages have keys: the order of each key is what is looked at"""

    def done(self, messages: Sequence[bytes]) -> list[ProcessingReport]:
        """Do the work on a batch that is in its source's order; one report for each run found in it."""
        began = time.monotonic()
        if self.sizes is not None:
            return self._worked(message_codec.read_mixed(messages, self._filler(), self.sizes.of), began)
        return self._worked(message_codec.read(messages, self.message_bytes, self._filler()), began)

    def done_in_place(self, matrix: Bytes) -> list[ProcessingReport]:
        """The same for a batch that lies in one piece: shape (messages, message_bytes)."""
        if self.sizes is not None:  # alike by chance
            return self.done([row.tobytes() for row in matrix])
        began = time.monotonic()
        return self._worked(message_codec.read_matrix(matrix, self._filler()), began)

    def _filler(self) -> bytes:
        largest = self.message_bytes if self.sizes is None else self.sizes.sizes.largest
        return message_codec.filler(largest, self.entropy)

    def _worked(self, headers: Headers, began: float) -> list[ProcessingReport]:
        asked = float(headers.cost.sum())
        started = time.monotonic()
        cpu_used_s = burn(asked) if asked > 0 else 0.0
        ended = time.monotonic()
        done = started + (ended - started) * np.arange(1, len(headers) + 1) / max(1, len(headers))
        runs = sorted(set(headers.run.tolist())) or [
            NO_RUN
        ]  # for few messages far cheaper than np.unique, for many no dearer
        parts = [slice(None)] if len(runs) == 1 else [headers.run == run for run in runs]
        here, apart = self._here(headers)
        reports = [
            _report(here, run, done, self.keys, part=part, began=began) for run, part in zip(runs, parts, strict=True)
        ]
        if apart is not None:  # two machines' clocks: what they differ by is no latency
            reports = [
                _told_apart(report, here.sent[part], done[part], apart)
                for report, part in zip(reports, parts, strict=True)
            ]
        last = reports[-1]
        extra = ProcessingReport(
            ended, last.run, [], corrupted=headers.corrupted, cpu_requested_s=asked, cpu_used_s=cpu_used_s
        )
        return [*reports, extra] if headers.corrupted or asked else reports

    def _here(self, headers: Headers) -> tuple[Headers, float | None]:
        """The headers by this machine's clock, and how far that may be wrong: inf where nobody knows, None where it is the same."""
        if self.clock.boot in ("", procfs.boot_id()) and not self.clock.theirs:
            return headers, None
        ahead, apart = clock.seconds_ahead(self.clock), self.clock.apart
        return dataclasses.replace(
            headers, due=headers.due - ahead, sent=headers.sent - ahead
        ), math.inf if apart is None else apart


def _told_apart(
    report: ProcessingReport, sent: NDArray[np.float64], done: NDArray[np.float64], apart: float
) -> ProcessingReport:
    """A report whose latencies are wrong by up to `apart`: only what is negative by more is impossible; by inf there are none."""
    if math.isinf(apart):
        return replace(report, from_due=[], from_sent=[], negative=0)
    return replace(report, negative=int(np.count_nonzero(done + apart < sent)))


NO_RUN = -1
"""The run of messages whose header cannot be read."""


def burn(seconds: float) -> float:
    """Spend CPU time of this thread, at least `seconds` of it; returns what was spent."""
    started = time.thread_time()
    end = started + seconds
    while time.thread_time() < end:
        for _ in range(100):
            pass
    return time.thread_time() - started


def _report(
    headers: Headers, run: int, done: NDArray[np.float64], keys: KeyDrawing | None, *, part: slice | NDArray[np.bool_], began: float
) -> ProcessingReport:  # fmt: skip
    """The account of the part of a batch that is of one run; the batch was got at `began`, message i was done at done[i]."""
    producers, seqs, ended = headers.producer[part], headers.seq[part], done[part]
    names = sorted(set(producers.tolist()))
    groups = [(name, seqs if len(names) == 1 else seqs[producers == name]) for name in names]
    (from_due, _), (from_sent, negative), (processing, _) = (
        sparse_of(ended - since) for since in (headers.due[part], headers.sent[part], began)
    )
    return ProcessingReport(
        float(done[-1]) if len(done) else began,
        run,
        [sums_of(producer, seq) for producer, seq in groups],
        out_of_order=sum(_disordered(producer, seq, keys) for producer, seq in groups),
        from_due=from_due,
        from_sent=from_sent,
        processing=processing,
        negative=negative,
    )


def _disordered(producer: int, seq: NDArray[np.uint64], keys: KeyDrawing | None) -> int:
    """How many messages of a producer stand behind a later one: of all, or, where messages have keys, of their own key."""
    if keys is None:
        return int(np.count_nonzero(seq[1:] < seq[:-1]))
    of_key = keys.of(np.full(len(seq), producer), seq)
    place = np.argsort(of_key, kind="stable")
    same, ordered = of_key[place], seq[place]
    return int(np.count_nonzero((same[1:] == same[:-1]) & (ordered[1:] < ordered[:-1])))
