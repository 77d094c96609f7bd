"""Advice from critical participation: which change acts on which activities, and how much it can gain at most."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

NAMES: dict[str, str] = {
    "processing": "burning the messages’ CPU cost",
    "deserialize": "reading and verifying messages",
    "serialize": "encoding and sending messages",
    "shuffle-read": "reading shuffled data",
    "shuffle-write": "writing shuffled data",
    "scheduling": "scheduling",
    "planning": "planning batches",
    "wal-commit": "logging a batch before it runs",
    "offset-commit": "committing a batch",
    "source-read": "reading from the source",
    "buffer": "buffering",
    "gc": "garbage collection",
    "reporting": "our own counting and reporting",
    "idle(trigger)": "waiting for the next trigger",
    "idle(source)": "waiting for messages",
    "waiting": "waiting for another worker",
    "unknown": "unknown",
    "data": "data on its way",
    "control": "control messages",
}
"""Words for each activity, and for each kind of message."""
Lever = Literal["workers", "batch interval", "partitions"]
"""What a setting of a system can change."""


class Change(Struct, frozen=True):
    """A change of a system, and the activities that it shortens."""

    text: str
    activities: tuple[str, ...]
    batches_only: bool = False
    """whether it exists only for a framework that works in batches"""
    common: bool = False
    """whether people try it first, so that it is worth saying that it would not help"""
    lever: Lever | None = None
    """what makes the change; None where no setting of a system does"""


CHANGES = (
    Change("more cores", ("processing", "deserialize", "gc"), common=True, lever="workers"),
    Change(
        "a longer batch interval",
        ("planning", "scheduling", "wal-commit", "offset-commit", "control"),
        batches_only=True,
        common=True,
        lever="batch interval",
    ),
    Change("a faster checkpoint folder", ("wal-commit", "offset-commit"), batches_only=True),
    Change("a faster source", ("source-read", "data", "idle(source)", "idle(trigger)"), common=True),
    Change("more senders or bridges", ("serialize",)),
    Change("less shuffling", ("shuffle-read", "shuffle-write")),
    Change("a larger heap", ("gc",)),
)
"""A change that acts on fewer activities than another one stands behind it."""
EQUAL_PARTS = Change("equal parts for all", (), lever="partitions")
"""What helps where one of several workers has most of the work."""
IDLE_SHARE = 0.5
"""Share of the critical path from which on a sustained trial is said not to show a limit."""
MIN_GAIN = 0.2
"""Share of the critical path from which on a change is said to help."""
MAX_LOST = 0.1
"""Share of the critical path below which a change is said not to help."""
MIN_NAMED = 0.05
"""Share of the critical path from which on an activity is named."""
MIN_STRAGGLER = 0.75
"""Share that one of several workers must have of what all of them have, to be called a straggler."""
MIN_STRETCH = 1.25
"""Factor by which a straggler must be busier than the mean of the others; some worker always ends last."""
MAX_BUSY_IDLE, MIN_OTHERS_IDLE = 0.05, 0.2
"""Or: largest share of its time that a straggler idles, and least mean share that the others do. Workers that never
wait for each other share the critical path by their busy time, however long all have to wait for the last one."""


class Gain(Struct, frozen=True):
    """A change, and the share of the critical path that its activities have: the most that it can shorten it by."""

    text: str
    share: float


class ChangeAdvice(Struct, frozen=True):
    """Changes that would help and that would not; each with the most that it can gain."""

    helps: tuple[Gain, ...]
    useless: tuple[Gain, ...]
    headroom: float
    """share of the critical path in which the system had nothing to do"""


Straggler = tuple[str, float, int]
"""A worker, its share of the critical path, and the number of workers of its operator."""


def advise(
    shares: Mapping[str, float], *, batches: bool, overloaded: bool, straggler: Straggler | None = None
) -> ChangeAdvice:
    """Return what the critical participation of the activities of a trial says about changes.

    Args:
        shares: critical participation by activity.
        batches: whether the framework works in batches.
        overloaded: whether the trial was overloaded: then idling means that the source gives less than it has, else it
            is headroom.
        straggler: the worker for which others wait: then equal parts help and more workers do not.
    """
    if not any(shares.values()):  # no window has a path
        return ChangeAdvice((), (), 0.0)
    idle = () if overloaded else ("idle(trigger)", "idle(source)")
    gains = [
        (change, Gain(change.text, sum(shares.get(name, 0.0) for name in change.activities if name not in idle)))
        for change in CHANGES
        if batches or not change.batches_only
    ]
    useful = sorted((gain for _, gain in gains if gain.share >= MIN_GAIN), key=lambda gain: -gain.share)
    if straggler is not None:
        useful = [Gain(EQUAL_PARTS.text, straggler[1])]
    useless = tuple(gain for change, gain in gains if change.common and gain.share < MAX_LOST)
    return ChangeAdvice(tuple(useful[:2]), useless, sum(shares.get(name, 0.0) for name in idle))


def named_changes(advice: ChangeAdvice, straggler: str | None) -> tuple[Change, ...]:
    """Return the changes that the sentence says would help, in its order; none where the trial shows no limit."""
    if straggler is not None:
        return (EQUAL_PARTS,)
    if advice.headroom >= IDLE_SHARE:
        return ()
    return tuple(change for gain in advice.helps for change in CHANGES if change.text == gain.text)


def find_straggler(
    shares: Mapping[str, float], busy: Mapping[str, float], idle: Mapping[str, float], operators: Mapping[str, str]
) -> Straggler | None:
    """Return the worker on which the others of its operator wait, or that works while they idle; None if there is none.

    Args:
        shares: critical participation of each worker without idling.
        busy: time in which each worker neither idles nor waits.
        idle: time in which each worker idles; nobody waits for one that mostly does.
        operators: what each worker mostly executes; workers of one operator do the same work.
    """
    if not shares:
        return None
    worker, share = max(shares.items(), key=lambda item: item[1])
    others = [one for one, operator in operators.items() if operator == operators.get(worker) and one != worker]
    if not others or share * (len(others) + 1) < MIN_GAIN:
        return None
    mean = sum(busy.get(one, 0.0) for one in others) / len(others)
    if busy.get(worker, 0.0) < max(MIN_STRETCH * mean, idle.get(worker, 0.0)):
        return None
    carries = share >= MIN_STRAGGLER * (share + sum(shares.get(one, 0.0) for one in others))
    others_idle = sum(_idle_share(one, busy, idle) for one in others) / len(others)
    alone_is_busy = _idle_share(worker, busy, idle) <= MAX_BUSY_IDLE and others_idle >= MIN_OTHERS_IDLE
    return (worker, share, len(others) + 1) if carries or alone_is_busy else None


def _idle_share(worker: str, busy: Mapping[str, float], idle: Mapping[str, float]) -> float:
    """Return the share of a worker's time, without waits, in which it idles."""
    idles = idle.get(worker, 0.0)
    return idles / (busy.get(worker, 0.0) + idles) if idles else 0.0


def write_sentence(shares: Mapping[str, float], advice: ChangeAdvice, straggler: Straggler | None) -> str:
    """Return one sentence: what the critical path consists of, what would help, and what would not."""
    named = [(name, share) for name, share in shares.items() if share >= MIN_NAMED][:3]
    if not named:
        return "the trace has no path from the begin of a window to its end"
    parts = [f"{share:.0%} is {NAMES.get(name, name)}" for name, share in named]
    parts[0] = parts[0].replace(" is ", " of the critical path is ", 1)
    clauses = [_join_texts(parts, "and"), _write_advice(advice)]
    if straggler is not None:
        worker, share, count = straggler
        clauses[1] = (
            f"{worker} alone has {share:.0%}, of {count} workers: {EQUAL_PARTS.text} would help, more cores would not"
        )
    return "; ".join(clause for clause in clauses if clause)


def _write_advice(advice: ChangeAdvice) -> str:
    helps = _join_texts([gain.text for gain in advice.helps], "or")
    useless = _join_texts([gain.text for gain in advice.useless], "or")
    if advice.headroom >= IDLE_SHARE:
        return "the system has time left, so that this trial shows no limit"
    if helps and useless:
        return f"{helps} would help, {useless} would not"
    if helps:
        return f"{helps} would help"
    return f"{useless} would not help" if useless else ""


def _join_texts(texts: Sequence[str], word: str) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} {word} {texts[-1]}"
