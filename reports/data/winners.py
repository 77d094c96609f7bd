"""The ranking of systems at each point of the grid, and a summary of the whole run in a few sentences."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from bench.model.measurement import Result
from bench.units import seconds_text, size_text
from reports.data.derived import rate_of
from reports.data.labels import format_claim, status_of
from reports.data.run_data import CellData, RunData

MIN_RATIO_REPORTED = 1.5
"""The smallest ratio of the best rate to another one that the summary mentions."""
RATED = ("measured", "lower-bound")
"""Statuses whose rate can win; an unstable cell sustained its rate only sometimes."""
UNSTABLE_MARGIN = 2.0
"""Factor on the upper end of an unstable cell's interval: its true rate may be higher than its trials suggest."""
Outcome = Literal["clear", "tie", "none"]


class Ranking(Struct, frozen=True):
    """All systems at one point of the grid; the first leader has the highest estimate, others may be as good."""

    size: int
    cost: float
    cells: tuple[CellData, ...]
    leaders: tuple[str, ...]

    @property
    def outcome(self) -> Outcome:
        """Return "clear" for one leader, "tie" for several, "none" for no leader."""
        return "none" if not self.leaders else "clear" if len(self.leaders) == 1 else "tie"

    @property
    def complete(self) -> bool:
        """True if every system has an answer here."""
        return not any(has_no_answer(cell_data) for cell_data in self.cells)

    @property
    def best(self) -> Result | None:
        """The result of the first leader."""
        return next(
            (cell_data.result for cell_data in self.cells if self.leaders[:1] == (cell_data.cell.system,)), None
        )


def has_no_answer(cell_data: CellData) -> bool:
    """Return True if a cell is not measured yet, or failed although its system did not die."""
    result = cell_data.result
    return result is None or (result.status == "failed" and "died " not in (result.reason or ""))


def rank_systems(size: int, cost: float, cells: Sequence[CellData]) -> Ranking:
    """Rank the systems at one point of the grid.

    A system leads alone only if its sustained rate is above the highest rate that any other system may have.
    """
    results = [cell_data.result for cell_data in cells if cell_data.result is not None]
    rated = sorted((result for result in results if _is_rated(result)), key=lambda r: -(rate_of(r) or 0.0))
    if not rated:
        return Ranking(size, cost, tuple(cells), ())
    sustained = rated[0].low_hz if rated[0].low_hz is not None else 0.0
    others = [*rated[1:], *(result for result in results if not _is_rated(result))]
    tied = [result.system for result in others if _max_possible_rate(result) > sustained]
    return Ranking(size, cost, tuple(cells), (rated[0].system, *tied))


def _is_rated(result: Result) -> bool:
    return result.status in RATED and rate_of(result) is not None


def _max_possible_rate(result: Result) -> float:
    """Return the highest rate that a system may have; 0 for one that did not run."""
    if result.status in ("failed", "unsupported"):
        return 0.0
    if result.high_hz is not None:
        return result.high_hz * (UNSTABLE_MARGIN if result.status == "unstable" else 1.0)
    return float("inf") if rate_of(result) is not None else 0.0


def rank_all_points(run_data: RunData) -> tuple[Ranking, ...]:
    """Return a ranking for each point of the grid, in the order of CPU cost, then message size."""
    return tuple(
        rank_systems(size, cost, run_data.at(size, cost)) for cost in run_data.costs for size in run_data.sizes
    )


def summarize_run(run_data: RunData) -> str:
    """Return the findings of a run in two to four sentences that can be quoted."""
    rankings = rank_all_points(run_data)
    leaders = _describe_leaders(rankings) if len(run_data.systems) > 1 else ""
    sentences = [leaders, _describe_peak(run_data), _describe_contrast(rankings), _describe_gaps(run_data)]
    return " ".join(sentence for sentence in sentences if sentence)


def _describe_leaders(rankings: Sequence[Ranking]) -> str:
    """Count the points at which each system leads; points without an answer of every system are left out."""
    finished = [ranking for ranking in rankings if ranking.complete]
    decided = [ranking for ranking in finished if ranking.outcome != "none"]
    ties = sum(ranking.outcome == "tie" for ranking in decided)
    wins = Counter(ranking.leaders[0] for ranking in decided if ranking.outcome == "clear").most_common()
    if not finished:
        return "No point of the map has an answer for every system yet."
    if not decided:
        return "No system sustained any rate that was tried."
    if not wins:
        return f"No system is clearly the best at any point of the map{_describe_ruled_out(decided)}."
    (first, count), *others = wins
    share = f"all {count}" if count == len(rankings) else f"{count} of {len(rankings)}"
    parts = [f"{first} has the highest throughput at {share} points of the map"]
    parts += [f"{system} at {number}" for system, number in others]
    sentence = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    sentence += f"; {ties} {'is' if ties == 1 else 'are'} too close to call." if ties else "."
    unknown = len(rankings) - len(finished)
    return (
        f"{sentence} At {unknown} {'point' if unknown == 1 else 'points'} some system has no answer yet."
        if unknown
        else sentence
    )


def _describe_peak(run_data: RunData) -> str:
    results = [cell_data.result for cell_data in run_data.cells]
    rated = [result for result in results if result is not None and _is_rated(result)]
    if not rated:
        return ""
    top = max(rated, key=lambda result: rate_of(result) or 0.0)
    point = _format_point(top.message_bytes, top.cpu_seconds)
    return f"The highest rate in this run is {format_claim(top)}, by {top.system} with {point}."


def _describe_contrast(rankings: Sequence[Ranking]) -> str:
    """Name the point with the largest ratio between two systems, as far as intervals and bounds prove it."""
    ratios = []
    for ranking in rankings:
        results = [cell_data.result for cell_data in ranking.cells if cell_data.result is not None]
        limited = [result for result in results if 0 < _max_possible_rate(result) < float("inf")]
        slowest = min(limited, key=_max_possible_rate, default=None)
        best = ranking.best
        if best is not None and best.low_hz is not None and slowest is not None and slowest is not best:
            ratios.append((best.low_hz / _max_possible_rate(slowest), best.system, slowest.system, ranking))
    if not ratios:
        return ""
    ratio, best_system, slow_system, ranking = max(ratios, key=lambda one: one[0])
    if ratio < MIN_RATIO_REPORTED:
        return ""
    point = _format_point(ranking.size, ranking.cost)
    times = math.floor(ratio * 10) / 10 if ratio < 10 else math.floor(ratio)
    factor = f"at least {times:g} times the rate of {slow_system}"
    return f"The largest difference is with {point}: {best_system} reaches {factor}."


def _describe_ruled_out(decided: Sequence[Ranking]) -> str:
    """Name the systems that are certainly not the best, and at how many points."""
    slower = Counter(
        cell_data.cell.system
        for ranking in decided
        for cell_data in ranking.cells
        if cell_data.cell.system not in ranking.leaders
        and not has_no_answer(cell_data)
        and status_of(cell_data) != "unsupported"
    ).most_common()
    counts = [
        f"{system} at {f'all {count}' if count == len(decided) else f'{count} of {len(decided)}'}"
        for system, count in slower
    ]
    return f"; certainly not the best: {', '.join(counts)}" if counts else ""


def _describe_gaps(run_data: RunData) -> str:
    missing = len(run_data.missing)
    if not missing:
        return ""
    return f"{missing} of {len(run_data.cells)} cells {'has' if missing == 1 else 'have'} no result yet."


def _format_point(size: int, cost: float) -> str:
    return f"{size_text(size)} messages that cost {seconds_text(cost)} of CPU time"
