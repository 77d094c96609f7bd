"""The events of a trace in columns: names are numbers, times are nanoseconds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.model.trace import ACTIVITIES, MESSAGE_KINDS, Span, TraceMessage

Codes = NDArray[np.int64]
"""Places of names in a tuple of names."""
Times = NDArray[np.int64]
"""Nanoseconds."""
ACTIVITY_CODES = {activity: code for code, activity in enumerate(ACTIVITIES)}
KIND_CODES = {kind: code for code, kind in enumerate(MESSAGE_KINDS)}
WAITING, UNKNOWN = ACTIVITY_CODES["waiting"], ACTIVITY_CODES["unknown"]


@dataclass(frozen=True)
class Spans:
    """Activities of workers, a row each; `activity` are places in ACTIVITIES."""

    worker: Codes
    activity: Codes
    operator: Codes
    begin: Times
    end: Times

    def __len__(self) -> int:
        return len(self.begin)

    def select(self, rows: "NDArray[np.intp] | NDArray[np.bool_]") -> "Spans":
        """Return the rows of these indices, or those that a mask marks."""
        return Spans(self.worker[rows], self.activity[rows], self.operator[rows], self.begin[rows], self.end[rows])


@dataclass(frozen=True)
class Messages:
    """Messages between workers, a row each; `kind` are places in MESSAGE_KINDS."""

    kind: Codes
    sender: Codes
    receiver: Codes
    sent: Times
    received: Times

    def __len__(self) -> int:
        return len(self.sent)

    def select(self, rows: NDArray[np.bool_]) -> "Messages":
        """Return the rows that a mask marks."""
        return Messages(self.kind[rows], self.sender[rows], self.receiver[rows], self.sent[rows], self.received[rows])


@dataclass(frozen=True)
class Events:
    """The spans and the messages of a trace, with the names that their codes stand for."""

    workers: tuple[str, ...]
    operators: tuple[str, ...]
    spans: Spans
    messages: Messages

    def __len__(self) -> int:
        """Return the number of begins, ends, sends and receives."""
        return 2 * len(self.spans) + 2 * len(self.messages)


def make_events(spans: Sequence[Span], messages: Sequence[TraceMessage] = ()) -> Events:
    """Return records of a trace in columns."""
    workers, operators = _Names(), _Names()
    span_rows = [(workers[s.worker], ACTIVITY_CODES[s.activity], operators[s.operator], s.begin, s.end) for s in spans]
    message_rows = [(KIND_CODES[m.kind], workers[m.sender], workers[m.receiver], m.sent, m.received) for m in messages]
    return Events(tuple(workers), tuple(operators), Spans(*_columns(span_rows)), Messages(*_columns(message_rows)))


class _Names(dict[str, int]):
    """Names numbered in the order in which they are first asked for."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]


def _columns(rows: list[tuple[int, int, int, int, int]]) -> NDArray[np.int64]:
    return np.array(rows, dtype=np.int64).reshape(len(rows), 5).T
