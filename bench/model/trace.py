"""Records of a trace: the activities of the workers of a trial, the messages between them, and sampled quantities.

Times are nanoseconds of CLOCK_MONOTONIC of the harness's machine while a trial runs; in a stored trace they count from
the moment at which the first message was due.
"""

from typing import Literal, get_args

from msgspec import Struct, field

Activity = Literal[
    "processing", "deserialize", "serialize", "shuffle-read", "shuffle-write", "scheduling", "planning", "wal-commit",
    "offset-commit", "source-read", "buffer", "gc", "reporting", "idle(trigger)", "idle(source)", "waiting", "unknown",
]  # fmt: skip
"""This list is closed. A worker is *idle* where it has nothing to do, and *waiting* where another worker must first
finish something; `reporting` is the harness's own part of a worker."""
MessageKind = Literal["data", "control"]
ACTIVITIES: tuple[Activity, ...] = get_args(Activity)
MESSAGE_KINDS: tuple[MessageKind, ...] = get_args(MessageKind)


class Span(Struct, frozen=True, array_like=True):
    """An activity of one worker from `begin` to `end`, in nanoseconds."""

    worker: str
    activity: Activity
    begin: int
    end: int
    operator: str = ""
    """the part of the framework's program that the worker executes"""
    messages: int = 0
    """messages of the source that it was about"""


class TraceMessage(Struct, frozen=True, array_like=True):
    """Something that one worker sent to another: data, or control such as a task and its result; times in ns."""

    kind: MessageKind
    sender: str
    receiver: str
    sent: int
    received: int
    id: int = 0
    """correlates several records of one thing; 0 without"""
    messages: int = 0
    """messages of the source in it"""


class MessageEnd(Struct, frozen=True, array_like=True):
    """One end of a message whose other end is recorded by another worker; both have the same channel and id."""

    worker: str
    """that recorded it"""
    kind: MessageKind
    channel: str
    id: int
    """unlike that of any other message of its channel"""
    at: int
    """nanoseconds"""
    is_sent: bool
    """whether the worker sent it; it received it otherwise"""
    messages: int = 0
    """messages of the source in it"""


class TraceSample(Struct, frozen=True, array_like=True):
    """The value of a metric of an entity, such as the lateness of the load generator in seconds."""

    at: int
    """nanoseconds"""
    entity: str
    metric: str
    value: float


class TraceEvents(Struct, frozen=True, omit_defaults=True):
    """Events of a trace, in any order."""

    spans: list[Span] = field(default_factory=list)
    messages: list[TraceMessage] = field(default_factory=list)
    samples: list[TraceSample] = field(default_factory=list)
    ends: list[MessageEnd] = field(default_factory=list)
    """of messages that are whole only together with what other workers recorded"""

    def __len__(self) -> int:
        return len(self.spans) + len(self.messages) + len(self.samples) + len(self.ends)
