"""The CPU that a PE of an image uses: a cumulative mean of what the workers report."""

from collections.abc import Iterable
from dataclasses import dataclass

MAX_HISTORY = 10_000


@dataclass(frozen=True, slots=True)
class Profile:
    """The mean of `history` readings, as a share of a worker."""

    mean: float
    history: int

    def updated(self, reading: float, min_size: float) -> "Profile":
        """Return the profile with one more reading: m <- (h m + x) / (h + 1), h <= 10,000, m >= `min_size`."""
        mean = (self.history * self.mean + reading) / (self.history + 1)
        return Profile(max(min_size, mean), min(MAX_HISTORY, self.history + 1))


def weighted_mean(reports: Iterable[tuple[float | None, int]]) -> float | None:
    """Return the mean of (average of a worker, number of its PEs), weighted by PEs; None without any average.

    A worker that has not measured yet is left out; it does not count as zero.
    """
    known = [(average, count) for average, count in reports if average is not None and count > 0]
    total = sum(count for _, count in known)
    return sum(average * count for average, count in known) / total if total else None


class Profiler:
    """The profiles of all images."""

    def __init__(self, min_size: float) -> None:
        self._min_size = min_size
        self.profiles: dict[str, Profile] = {}

    def add_reports(self, image: str, reports: Iterable[tuple[float | None, int]]) -> None:
        """Add the reports of the workers about an image, as of `weighted_mean`."""
        reading = weighted_mean(reports)
        if reading is not None:
            self.profiles[image] = self.profiles.get(image, Profile(0.0, 0)).updated(reading, self._min_size)

    def size(self, image: str) -> float | None:
        """Return the mean of an image; None when it has not been measured."""
        profile = self.profiles.get(image)
        return None if profile is None else profile.mean
