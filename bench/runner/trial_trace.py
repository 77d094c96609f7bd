"""The trace of one trial under way: pure, it takes in what the framework and the load generator report."""

from bench.model.trace import MessageEnd, Span, TraceEvents, TraceMessage, TraceSample
from bench.workload.load_spec import SendProgress

MAX_EVENTS = 2_000_000
"""Of a trial: some 300 MB of memory. Later ones are left out, and the windows behind them have no path."""
MAX_UNPAIRED = 200_000
"""Ends of messages whose other end is not known, or never recorded; the oldest are given up."""
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
        self._unpaired: dict[tuple[str, int], MessageEnd] = {}
        self._sampled_ns = -(10**18)

    def add(self, events: TraceEvents) -> None:
        """Take in what a process of the framework or of the load generator did."""
        if len(self._spans) + len(self._messages) + len(self._samples) > MAX_EVENTS:
            return
        begin = self._begin_ns
        for span in events.spans:
            if span.end > begin:
                first, last = max(0, span.begin - begin), span.end - begin
                self._spans.append(Span(span.worker, span.activity, first, last, span.operator, span.messages))
        for one in events.messages:
            self._add_message(one)
        for sample in events.samples:
            if sample.at >= begin:
                self._samples.append(TraceSample(sample.at - begin, sample.entity, sample.metric, sample.value))
        for end in events.ends:
            self._pair(end)

    def add_progress(self, progress: SendProgress) -> None:
        """Sample how late the load generator is and for how long the source did not take more; take in its spans."""
        if progress.trace is not None:
            self.add(progress.trace)
        at = round(progress.at * 1e9) - self._begin_ns
        if at >= self._sampled_ns + SAMPLE_INTERVAL_S * 1e9:
            self._sampled_ns = at
            self._samples += [
                TraceSample(at, LOAD, "late_s", progress.late),
                TraceSample(at, LOAD, "blocked_s", progress.blocked),
            ]

    def _add_message(self, one: TraceMessage) -> None:
        begin = self._begin_ns
        if one.received > begin:
            sent, received = max(0, one.sent - begin), one.received - begin
            self._messages.append(
                TraceMessage(one.kind, one.sender, one.receiver, sent, received, one.id, one.messages)
            )

    def _pair(self, end: MessageEnd) -> None:
        """Add the message of which this is the second end to come; keep a first one. What is sent again counts last."""
        key = (end.channel, end.id)
        other = self._unpaired.pop(key, None)
        if other is None or other.is_sent == end.is_sent:
            self._unpaired[key] = end
            if len(self._unpaired) > MAX_UNPAIRED:
                del self._unpaired[next(iter(self._unpaired))]
            return
        sent, received = (end, other) if end.is_sent else (other, end)
        self._add_message(
            TraceMessage(sent.kind, sent.worker, received.worker, sent.at, received.at, sent.id, sent.messages)
        )

    def events(self) -> TraceEvents:
        """Return everything so far."""
        return TraceEvents(self._spans, self._messages, self._samples)
