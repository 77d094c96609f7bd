"""The trace of one trial under way: pure, it takes in what the framework and the load generator report."""

from bench.model.trace import Span, TraceEvents, TraceMessage, TraceSample
from bench.workload.load_spec import SendProgress

MAX_EVENTS = 2_000_000
"""Of a trial: some 300 MB of memory. Later ones are left out, and the windows behind them have no path."""
SAMPLE_INTERVAL_S = 0.1
LOAD = "load generator"


class TrialTrace:
    """The events of a trace; those before the trial are left out, and times count from the first due time.

    Args:
        begin: CLOCK_MONOTONIC seconds of the first due time.
    """

    def __init__(self, begin: float) -> None:
        self._begin_ns = round(begin * 1e9)
        self._spans: list[Span] = []
        self._messages: list[TraceMessage] = []
        self._samples: list[TraceSample] = []
        self._sampled_ns = -(10**18)

    def add(self, events: TraceEvents) -> None:
        """Take in what a process of the framework did."""
        if len(self._spans) + len(self._messages) > MAX_EVENTS:
            return
        begin = self._begin_ns
        for span in events.spans:
            if span.end > begin:
                first, last = max(0, span.begin - begin), span.end - begin
                self._spans.append(Span(span.worker, span.activity, first, last, span.operator, span.messages))
        for one in events.messages:
            if one.received > begin:
                sent, received = max(0, one.sent - begin), one.received - begin
                self._messages.append(
                    TraceMessage(one.kind, one.sender, one.receiver, sent, received, one.id, one.messages)
                )

    def add_progress(self, progress: SendProgress) -> None:
        """Sample how late the load generator is, and for how long the source did not take more."""
        at = round(progress.at * 1e9) - self._begin_ns
        if at >= self._sampled_ns + SAMPLE_INTERVAL_S * 1e9:
            self._sampled_ns = at
            self._samples += [
                TraceSample(at, LOAD, "late_s", progress.late),
                TraceSample(at, LOAD, "blocked_s", progress.blocked),
            ]

    def events(self) -> TraceEvents:
        """Return everything so far."""
        return TraceEvents(self._spans, self._messages, self._samples)
