"""The one function that every framework runs on every message: read it, verify it, burn its CPU cost, account for it."""

import functools
import time
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from bench import message
from bench.latency import Histogram
from bench.message import Bytes, Headers
from bench.procfs import boot_id
from bench.tally import Report, sums_of


class Work(Struct, frozen=True):
    """What a message must look like; all that a framework has to know of it."""

    message_bytes: int
    entropy: float
    boot: str = ""
    """of the machine whose clock is in the messages; a machine of another boot reports no latencies. Any will do when empty"""

    def done(self, messages: Sequence[bytes]) -> list[Report]:
        """Do the work on a batch that is in its source's order; one report for each run found in it."""
        began = time.monotonic()
        return self._worked(message.read(messages, self.message_bytes, self._filler()), began)

    def done_in_place(self, matrix: Bytes) -> list[Report]:
        """The same for a batch that lies in one piece: shape (messages, message_bytes)."""
        began = time.monotonic()
        return self._worked(message.read_matrix(matrix, self._filler()), began)

    def _filler(self) -> bytes:
        return message.filler(self.message_bytes, self.entropy)

    def _worked(self, headers: Headers, began: float) -> list[Report]:
        asked = float(headers.cost.sum())
        started = time.monotonic()
        burnt = burn(asked) if asked > 0 else 0.0
        ended = time.monotonic()
        done = started + (ended - started) * np.arange(1, len(headers) + 1) / max(1, len(headers))
        runs = np.unique(headers.run) if len(headers) else np.array([NO_RUN])
        reports = [_report(headers, int(run), done, began) for run in runs]
        if self.boot not in ("", _boot()):  # two machines' clocks: what they differ by is no latency
            reports = [replace(report, from_due=[], from_sent=[], negative=0) for report in reports]
        last = reports[-1]
        extra = Report(ended, last.run, [], corrupted=headers.corrupted, asked=asked, burnt=burnt)
        return [*reports, extra] if headers.corrupted or asked else reports


NO_RUN = -1
"""The run of messages whose header cannot be read."""


@functools.cache
def _boot() -> str:
    return boot_id()


def burn(seconds: float) -> float:
    """Spend CPU time of this thread, at least `seconds` of it; returns what was spent."""
    started = time.thread_time()
    end = started + seconds
    while time.thread_time() < end:
        for _ in range(100):
            pass
    return time.thread_time() - started


def _report(headers: Headers, run: int, done: NDArray[np.float64], began: float) -> Report:
    """The account of the messages of one run in a batch that was got at `began`; message i was done at done[i]."""
    of_run = headers.run == run
    producers, seqs = headers.producer[of_run], headers.seq[of_run]
    groups = [(int(producer), seqs[producers == producer]) for producer in np.unique(producers)]
    from_due, from_sent, processing = Histogram(), Histogram(), Histogram()
    from_due.record(done[of_run] - headers.due[of_run])
    from_sent.record(done[of_run] - headers.sent[of_run])
    processing.record(done[of_run] - began)
    return Report(
        float(done[-1]) if len(done) else began,
        run,
        [sums_of(producer, seq) for producer, seq in groups],
        disordered=sum(int(np.count_nonzero(seq[1:] < seq[:-1])) for _, seq in groups),
        from_due=from_due.sparse(),
        from_sent=from_sent.sparse(),
        processing=processing.sparse(),
        negative=from_sent.negative,
    )
