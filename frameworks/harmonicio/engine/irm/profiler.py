"""How much CPU the PEs of an image use: a cumulative mean over what the workers report."""

from collections.abc import Iterable
from dataclasses import dataclass

MAX_HISTORY = 10_000


@dataclass(frozen=True, slots=True)
class Profile:
    """The mean of `history` readings, as a share of a whole worker."""

    mean: float
    history: int

    def after(self, reading: float, smallest: float) -> "Profile":
        """With one more: m <- (h m + x) / (h + 1), h at most 10,000, never below `smallest`."""
        mean = (self.history * self.mean + reading) / (self.history + 1)
        return Profile(max(smallest, mean), min(MAX_HISTORY, self.history + 1))


def reading_of(reports: Iterable[tuple[float | None, int]]) -> float | None:
    """One round's reading of an image: the mean over workers (average of one, how many PEs), by PEs; None when nobody knows.

    A worker that has not measured yet is left out; it does not count as zero.
    """
    known = [(average, count) for average, count in reports if average is not None and count > 0]
    total = sum(count for _, count in known)
    return sum(average * count for average, count in known) / total if total else None


class Profiler:
    """Profiles by image."""

    def __init__(self, smallest: float) -> None:
        self._smallest = smallest
        self.profiles: dict[str, Profile] = {}

    def learn(self, image: str, reports: Iterable[tuple[float | None, int]]) -> None:
        """Take in what the workers say of an image."""
        reading = reading_of(reports)
        if reading is not None:
            self.profiles[image] = self.profiles.get(image, Profile(0.0, 0)).after(reading, self._smallest)

    def size(self, image: str) -> float | None:
        """The image's known average; None when there is none."""
        profile = self.profiles.get(image)
        return None if profile is None else profile.mean
