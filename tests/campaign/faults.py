"""The faults of a campaign: what is done to whom, and when. Pure: the same seed gives the same campaign."""

import random
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Literal

from msgspec import Struct

from tests.campaign.subjects import Subject, Victim

Signal = Literal["kill", "terminate", "stop"]
Circumstance = Literal[
    "disk full", "read only", "torn line", "edited file", "no Java", "old Java", "few descriptors", "little memory"
]
Kind = Signal | Circumstance
SIGNALS: tuple[Signal, ...] = ("kill", "terminate", "stop")
SIGNAL_WEIGHTS = (3, 1, 1)
FILE_FAULTS: tuple[Circumstance, ...] = ("disk full", "read only", "torn line", "edited file")
LIMIT_FAULTS: tuple[Circumstance, ...] = ("few descriptors", "little memory")
JAVA_FAULTS: tuple[Circumstance, ...] = ("no Java", "old Java")
SIGNAL_SHARE, HARNESS_SHARE = 0.7, 0.6
MAX_FAULTS = 6
"""Signals in one attempt."""
MAX_STOPPED_S = 4.0
HISTORY_SHARE = 0.35
"""Of attempts that are histories of HarmonicIO, not runs of the harness."""

HistoryVictim = Literal["connector", "PE", "worker", "master", "disk"]
HISTORY_VICTIMS: tuple[HistoryVictim, ...] = ("PE", "worker", "master", "connector", "disk")
HISTORY_WEIGHTS = (4, 2, 2, 2, 1)
MAX_HISTORY_FAULTS = 10


class Fault(Struct, frozen=True):
    """One thing that is done during an attempt."""

    kind: Kind
    victim: Victim | HistoryVictim
    after_s: float
    """seconds since bench was started or resumed; of a history, the share of its messages that were sent before"""
    chance: float
    """from 0 to 1; chooses the process, the file, the byte or the limit"""
    held_s: float = 0.0
    """for which a stopped process stays stopped, or a disk full"""

    @property
    def resumes(self) -> bool:
        """Whether a stopped process goes on afterwards; otherwise it is killed."""
        return self.chance < 0.5

    @property
    def ends_harness(self) -> bool:
        """Whether bench does not go on by itself afterwards."""
        return self.victim == "harness" and (self.kind != "stop" or not self.resumes)


class Attempt(Struct, frozen=True):
    """A run, or a history, with its faults in order."""

    number: int
    subject: str
    """name of a subject; "history" for a history of HarmonicIO"""
    faults: tuple[Fault, ...]


def plan_attempts(seed: int, subjects: Sequence[Subject], *, is_root: bool) -> Iterator[Attempt]:
    """Yield attempts without an end; each depends on the seed and its number alone.

    Args:
        seed: Of the campaign.
        subjects: The runs that may be attacked.
        is_root: Whether file systems may be mounted; without, no disk becomes full or read-only.
    """
    for number in count():
        chance = random.Random(f"{seed} {number}")
        if chance.random() < HISTORY_SHARE:
            yield Attempt(number, "history", _history_faults(chance, is_root=is_root))
            continue
        subject = chance.choices(subjects, [one.weight for one in subjects])[0]
        drawn = _signals(chance, subject) if chance.random() < SIGNAL_SHARE else _circumstance(chance, subject, is_root)
        yield Attempt(number, subject.name, drawn)


def _signals(chance: random.Random, subject: Subject) -> tuple[Fault, ...]:
    """Return signals for processes of a run; those for the harness come at any moment, from its very start on."""
    others = tuple(victim for victim in subject.victims if victim != "harness")
    faults = []
    for _ in range(chance.randint(2, MAX_FAULTS)):
        victim: Victim = "harness" if not others or chance.random() < HARNESS_SHARE else chance.choice(others)
        begin = 0.2 if victim == "harness" else subject.begin_s
        faults.append(
            Fault(
                chance.choices(SIGNALS, SIGNAL_WEIGHTS)[0], victim, chance.uniform(begin, subject.seconds),
                chance.random(), chance.uniform(0.1, MAX_STOPPED_S),
            )
        )  # fmt: skip
    return tuple(faults)


def _circumstance(chance: random.Random, subject: Subject, is_root: bool) -> tuple[Fault, ...]:
    kinds = [*FILE_FAULTS, *LIMIT_FAULTS, *(JAVA_FAULTS if subject.java else ())]
    kind = chance.choice([kind for kind in kinds if is_root or kind not in ("disk full", "read only")])
    victim: Victim = "run folder" if kind in FILE_FAULTS else "machine"
    return (Fault(kind, victim, chance.uniform(subject.begin_s, subject.seconds), chance.random()),)


def _history_faults(chance: random.Random, *, is_root: bool) -> tuple[Fault, ...]:
    faults = []
    for _ in range(chance.randint(3, MAX_HISTORY_FAULTS)):
        victim = chance.choices(HISTORY_VICTIMS, HISTORY_WEIGHTS)[0]
        if victim == "disk" and not is_root:
            victim = "PE"
        kind: Kind = "disk full" if victim == "disk" else chance.choices(SIGNALS, SIGNAL_WEIGHTS)[0]
        faults.append(Fault(kind, victim, chance.random(), chance.random(), chance.uniform(0.1, MAX_STOPPED_S)))
    return tuple(faults)
