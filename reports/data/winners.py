"""Who is the best at one point of the grid, and whether this run can say so; and what follows for the whole map."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from bench.model.measurement import Result
from bench.units import seconds_text, size_text
from reports.data.derived import rate_of
from reports.data.labels import claim_of
from reports.data.run_data import CellData, RunData

WORTH_TELLING = 1.5
"""How many times faster the best must be for that to be said."""
RATED = ("measured", "lower-bound")
"""Statuses whose rate can win: that of an unstable cell was sustained only sometimes."""
UNSTABLE_REACH = 2.0
"""Of the upper end of an unstable cell's interval: its faster half lies beyond what its trials make together."""
Outcome = Literal["clear", "tie", "none"]


class BaselineRun(Struct, frozen=True):
    """Every system at one point of the grid; of `leaders` the first has the highest estimate, the rest may be as good."""

    size: int
    cost: float
    known: tuple[CellData, ...]
    leaders: tuple[str, ...]

    @property
    def outcome(self) -> Outcome:
        return "none" if not self.leaders else "clear" if len(self.leaders) == 1 else "tie"

    @property
    def complete(self) -> bool:
        """Whether of every system there is an answer here: that its cell failed for another reason than the system says nothing."""
        return not any(unanswered(known) for known in self.known)

    @property
    def best(self) -> Result | None:
        return next((known.result for known in self.known if self.leaders[:1] == (known.cell.system,)), None)


def unanswered(known: CellData) -> bool:
    """Whether nothing is known of a system at a point: not measured yet, or failed, but not because the system died."""
    result = known.result
    return result is None or (result.status == "failed" and "died " not in (result.reason or ""))


def contest_of(size: int, cost: float, known: Sequence[CellData]) -> BaselineRun:
    """The contest at one point. A system leads alone only when its sustained rate is above all that any other can reach."""
    results = [one.result for one in known if one.result is not None]
    rated = sorted((result for result in results if _is_rated(result)), key=lambda r: -(rate_of(r) or 0.0))
    if not rated:
        return BaselineRun(size, cost, tuple(known), ())
    floor = rated[0].low_hz if rated[0].low_hz is not None else 0.0
    baselines = [result for result in (*rated[1:], *(r for r in results if not _is_rated(r))) if _reach(result) > floor]
    return BaselineRun(size, cost, tuple(known), (rated[0].system, *(baseline.system for baseline in baselines)))


def _is_rated(result: Result) -> bool:
    return result.status in RATED and rate_of(result) is not None


def _reach(result: Result) -> float:
    """The highest rate that a system may still have; nothing for one that was not seen to run."""
    if result.status in ("failed", "unsupported"):
        return 0.0
    if result.high_hz is not None:
        return result.high_hz * (UNSTABLE_REACH if result.status == "unstable" else 1.0)
    return float("inf") if rate_of(result) is not None else 0.0


def contests_of(run_data: RunData) -> tuple[BaselineRun, ...]:
    """One contest for each point of the grid, cheap and small ones first."""
    return tuple(contest_of(size, cost, run_data.at(size, cost)) for cost in run_data.costs for size in run_data.sizes)


def finding_of(run_data: RunData) -> str:
    """What the run found, in two or three sentences that a person can quote."""
    contests = contests_of(run_data)
    standings = _standings(contests) if len(run_data.systems) > 1 else ""
    sentences = [standings, _peak(run_data), _contrast(contests), _gaps(run_data)]
    return " ".join(sentence for sentence in sentences if sentence)


def _standings(contests: Sequence[BaselineRun]) -> str:
    """Who leads where; points at which a system is still missing are left out, since it may turn out the best."""
    finished = [contest for contest in contests if contest.complete]
    held = [contest for contest in finished if contest.outcome != "none"]
    ties = sum(contest.outcome == "tie" for contest in held)
    wins = Counter(contest.leaders[0] for contest in held if contest.outcome == "clear").most_common()
    if not finished:
        return "At no point of the map is there an answer for every system."
    if not held:
        return "No system sustained any rate that was tried."
    if not wins:
        return f"At no point of the map can one system be told to be the best{_ruled_out(held)}."
    (first, count), *others = wins
    share = f"all {count}" if count == len(contests) else f"{count} of {len(contests)}"
    parts = [f"{first} sustains the highest frequency at {share} points of the map"]
    parts += [f"{system} at {number}" for system, number in others]
    sentence = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    said = f"{sentence}; {ties} {'is' if ties == 1 else 'are'} too close to call." if ties else f"{sentence}."
    unknown = len(contests) - len(finished)
    return f"{said} At {unknown} some system has no answer yet." if unknown else said


def _peak(run_data: RunData) -> str:
    rated = [known.result for known in run_data.cells if known.result is not None and _is_rated(known.result)]
    if not rated:
        return ""
    top = max(rated, key=lambda result: rate_of(result) or 0.0)
    return f"The highest that was seen is {claim_of(top)}, by {top.system} with {_point(top.message_bytes, top.cpu_seconds)}."


def _contrast(contests: Sequence[BaselineRun]) -> str:
    """Where the choice matters most, as far as intervals and bounds are certain of it."""
    ratios = []
    for contest in contests:
        results = [
            known.result for known in contest.known if known.result is not None and _reach(known.result) < float("inf")
        ]
        slowest = min((result for result in results if _reach(result) > 0), key=_reach, default=None)
        best = contest.best
        if best is not None and best.low_hz is not None and slowest is not None and slowest is not best:
            ratios.append((best.low_hz / _reach(slowest), best.system, slowest.system, contest))
    if not ratios:
        return ""
    ratio, best_system, slow_system, contest = max(ratios, key=lambda found: found[0])
    if ratio < WORTH_TELLING:
        return ""
    where, times = _point(contest.size, contest.cost), math.floor(ratio * 10) / 10 if ratio < 10 else math.floor(ratio)
    return f"The choice matters most with {where}, where {best_system} reaches at least {times:g} times the rate of {slow_system}."


def _ruled_out(held: Sequence[BaselineRun]) -> str:
    """Of which systems it is certain that they are not the best, and at how many points."""
    slower = Counter(
        known.cell.system
        for contest in held
        for known in contest.known
        if known.cell.system not in contest.leaders and not unanswered(known) and _status(known) != "unsupported"
    ).most_common()
    said = [
        f"{system} at {f'all {count}' if count == len(held) else f'{count} of {len(held)}'}" for system, count in slower
    ]
    return f"; certainly not the best {'is' if len(said) == 1 else 'are'} {', '.join(said)}" if said else ""


def _status(known: CellData) -> str:
    return known.result.status if known.result is not None else ""


def _gaps(run_data: RunData) -> str:
    missing = len(run_data.missing)
    return (
        f"{missing} of {len(run_data.cells)} cells {'has' if missing == 1 else 'have'} no result yet."
        if missing
        else ""
    )


def _point(size: int, cost: float) -> str:
    return f"{size_text(size)} messages that cost {seconds_text(cost)}"
