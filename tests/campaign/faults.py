"""The faults of a campaign: what is done to whom, and when. Pure: the same seed gives the same campaign."""

import random
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Literal

from msgspec import Struct

from tests.campaign.subjects import Subject, Victim

Signal = Literal["kill", "terminate", "stop"]
Circumstance = Literal[
    "disk full", "read only", "torn line", "edited file", "no Java", "old Java", "few descriptors", "little memory",
    "cut", "halved", "slow", "clock stepped", "data full", "small cgroup",
]  # fmt: skip
Kind = Signal | Circumstance
SIGNALS: tuple[Signal, ...] = ("kill", "terminate", "stop")
SIGNAL_WEIGHTS = (6, 1, 1)
NETWORK_FAULTS: tuple[Circumstance, ...] = ("cut", "halved", "slow")
"""Of HarmonicIO's data port or of a broker: no packet passes, none from the server does, or few bytes a second do."""
FILE_FAULTS: tuple[Circumstance, ...] = ("disk full", "read only", "torn line", "edited file")
LIMIT_FAULTS: tuple[Circumstance, ...] = ("few descriptors", "little memory")
JAVA_FAULTS: tuple[Circumstance, ...] = ("no Java", "old Java")
ROOT_FAULTS = ("disk full", "read only", "data full", "small cgroup", *NETWORK_FAULTS)
SIGNAL_SHARE, HARNESS_SHARE, EARLY_SHARE = 0.8, 0.6, 0.85
MAX_FAULTS, MAX_OWN_FAULTS = 6, 20
"""Signals in one attempt; the second where all of them hit the harness, which is back within a second."""
EARLY_S = 0.8
"""Mean of the seconds, after the first 0.2, at which such a run is hit early."""
MAX_STOPPED_S, MAX_CUT_S = 4.0, 10.0
HISTORY_SHARE = 0.6
"""Of attempts that are histories of HarmonicIO, not runs of the harness; each part of a campaign makes its own."""

HistoryVictim = Literal["connector", "PE", "worker", "master", "disk", "network", "clock"]
HISTORY_VICTIMS: tuple[HistoryVictim, ...] = ("PE", "worker", "master", "connector", "disk", "network")
HISTORY_WEIGHTS = (8, 4, 4, 4, 1, 2)
LIMITED_VICTIMS: tuple[HistoryVictim, ...] = ("PE", "worker", "master")
LIMIT_SHARE, CLOCK_SHARE, STEP_SHARE = 0.15, 0.15, 0.2
"""Of faults of these victims that are limits; of histories with a clock of their own, and of their faults."""
MIN_HISTORY_FAULTS, MAX_HISTORY_FAULTS = 10, 30


class Fault(Struct, frozen=True):
    """One thing that is done during an attempt."""

    kind: Kind
    victim: Victim | HistoryVictim
    after_s: float
    """seconds since bench was started or resumed; of a history, the share of its messages that were sent before"""
    chance: float
    """from 0 to 1; chooses the process, the file, the byte or the limit"""
    held_s: float = 0.0
    """for which a stopped process stays stopped, a disk full, or a network cut"""

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


def plan_attempts(
    seed: int, subjects: Sequence[Subject], *, is_root: bool, own_clock: bool = True
) -> Iterator[Attempt]:
    """Yield attempts without an end; each depends on the seed and its number alone.

    Args:
        seed: Of the campaign.
        subjects: The runs that may be attacked.
        is_root: Whether file systems may be mounted; without, no disk becomes full or read-only.
        own_clock: Whether processes can have a clock that steps.
    """
    for number in count():
        chance = random.Random(f"{seed} {number}")
        if chance.random() < HISTORY_SHARE:
            drawn = _history_faults(chance, is_root=is_root, own_clock=own_clock)
            yield Attempt(number, "history", drawn)
            continue
        subject = chance.choices(subjects, [one.weight for one in subjects])[0]
        if chance.random() < SIGNAL_SHARE:
            drawn = _signals(chance, subject)
        else:
            drawn = _circumstance(chance, subject, is_root=is_root, own_clock=own_clock)
        yield Attempt(number, subject.name, drawn)


def _signals(chance: random.Random, subject: Subject) -> tuple[Fault, ...]:
    """Return signals for processes of a run; those for the harness come at any moment, from its very start on."""
    others = tuple(victim for victim in subject.victims if victim != "harness")
    count = chance.randint(2, MAX_FAULTS) if others else chance.randint(MAX_FAULTS, MAX_OWN_FAULTS)
    return tuple(_signal(chance, subject, others) for _ in range(count))


def _signal(chance: random.Random, subject: Subject, others: Sequence[Victim]) -> Fault:
    victim: Victim = "harness" if not others or chance.random() < HARNESS_SHARE else chance.choice(others)
    begin = 0.2 if victim == "harness" else subject.begin_s
    after_s = chance.uniform(begin, subject.seconds)
    if not others and chance.random() < EARLY_SHARE:
        after_s = begin + chance.expovariate(1 / EARLY_S)
    kind = chance.choices(SIGNALS, SIGNAL_WEIGHTS)[0]
    return Fault(kind, victim, after_s, chance.random(), chance.uniform(0.1, MAX_STOPPED_S))


def _circumstance(chance: random.Random, subject: Subject, *, is_root: bool, own_clock: bool) -> tuple[Fault, ...]:
    kinds: list[Circumstance] = [*FILE_FAULTS, *LIMIT_FAULTS, *(JAVA_FAULTS if subject.java else ())]
    kinds += ["small cgroup"]
    kinds += ["data full", *NETWORK_FAULTS] if "source" in subject.victims else []
    kinds += ["clock stepped"] if own_clock else []
    kind = chance.choice([kind for kind in kinds if is_root or kind not in ROOT_FAULTS])
    of_source = kind in ("data full", *NETWORK_FAULTS)
    victim: Victim = "run folder" if kind in FILE_FAULTS else "source" if of_source else "machine"
    after_s = chance.uniform(subject.begin_s, subject.seconds)
    return (Fault(kind, victim, after_s, chance.random(), chance.uniform(0.1, MAX_CUT_S)),)


def _history_faults(chance: random.Random, *, is_root: bool, own_clock: bool) -> tuple[Fault, ...]:
    faults, steps = [], own_clock and chance.random() < CLOCK_SHARE
    for _ in range(chance.randint(MIN_HISTORY_FAULTS, MAX_HISTORY_FAULTS)):
        victim = chance.choices(HISTORY_VICTIMS, HISTORY_WEIGHTS)[0]
        if victim in ("disk", "network") and not is_root:
            victim = "PE"
        if steps and chance.random() < STEP_SHARE:
            victim = "clock"
        kind = _kind_of(chance, victim)
        faults.append(Fault(kind, victim, chance.random(), chance.random(), chance.uniform(0.1, MAX_STOPPED_S)))
    return tuple(faults)


def _kind_of(chance: random.Random, victim: HistoryVictim) -> Kind:
    if victim == "disk":
        return "disk full"
    if victim == "network":
        return chance.choice(NETWORK_FAULTS)
    if victim == "clock":
        return "clock stepped"
    if victim in LIMITED_VICTIMS and chance.random() < LIMIT_SHARE:
        return chance.choice(LIMIT_FAULTS)
    return chance.choices(SIGNALS, SIGNAL_WEIGHTS)[0]
