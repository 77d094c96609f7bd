"""The decision on each point of the grid in words, and a summary of the whole run in a few sentences."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from bench.analysis.winners import TIE, PointDecision, decide_points
from bench.model.measurement import Result
from bench.units import seconds_text, size_text
from reports.data.derived import rate_of
from reports.data.labels import format_claim, format_result_interval
from reports.data.run_data import CellData, RunData

MIN_RATIO_REPORTED = 1.5
"""The smallest certain lead that the summary names with its point."""
SHOWN_RATIO = 1.01
"""A lower limit below it is not shown: "1.00 times" reads as no lead."""
MAX_NAMED = 3
"""Systems that may be the best and are named; of more, only their number is."""
RATED = ("measured", "lower-bound")
Outcome = Literal["clear", "tie", "open", "none"]
TIE_TEXT = f"tie within {100 * TIE:.0f} %"


class Ranking(Struct, frozen=True):
    """All systems at one point of the grid, and the decision between them."""

    cells: tuple[CellData, ...]
    decision: PointDecision

    @property
    def size(self) -> int:
        """The message size of the point in bytes."""
        return self.decision.point[0]

    @property
    def cost(self) -> float:
        """The CPU cost of the point in seconds per message."""
        return self.decision.point[1]

    @property
    def leaders(self) -> tuple[str, ...]:
        """The systems that may be the best: one if there is a winner, none if no system has a rate."""
        return self.decision.candidates

    @property
    def outcome(self) -> Outcome:
        """Return "clear" for a winner, else "tie", "open" or "none"."""
        kind = self.decision.kind
        return "clear" if kind in ("leads", "single") else kind  # type: ignore[return-value]  # the other three kinds


def rank_cells(cells: Sequence[CellData]) -> tuple[Ranking, ...]:
    """Return a ranking for each point that these cells have, in the order of CPU cost, then message size."""
    results = [cell_data.result for cell_data in cells if cell_data.result is not None]
    missing = [cell_data.cell for cell_data in cells if cell_data.result is None]
    at: dict[tuple[int, float], list[CellData]] = {}
    for cell_data in cells:
        at.setdefault((cell_data.cell.message_bytes, cell_data.cell.cpu_seconds), []).append(cell_data)
    return tuple(Ranking(tuple(at[each.point]), each) for each in decide_points(results, missing=missing))


def rank_all_points(run_data: RunData) -> tuple[Ranking, ...]:
    """Return a ranking for each point of the grid, in the order of CPU cost, then message size."""
    return rank_cells(run_data.cells)


def describe_decision(decision: PointDecision) -> str:
    """Return a decision in a few words, such as "spark/tcp leads by 1.4 to 1.9 times"."""
    match decision.kind:
        case "leads":
            return f"{decision.leader} leads by {format_ratio(decision.ratio_low, decision.ratio_high)}"
        case "tie":
            return TIE_TEXT
        case "open":
            return f"open: {_join_systems(decision.candidates)}"
        case "single":
            return f"only {decision.leader}"
    return "no winner"


def format_ratio(low: float | None, high: float | None) -> str:
    """Return the limits of a ratio as text: "1.4 to 1.9 times", "at least 1.4 times", "up to 1.4 times"."""
    first = low or 1.0
    if first < SHOWN_RATIO:
        return "an unknown factor" if high is None else f"up to {_round(high, math.ceil)} times"
    if high is None:
        return f"at least {_round(first, math.floor)} times"
    return f"{_round(first, math.floor)} to {_round(high, math.ceil)} times"


def _round(ratio: float, towards: Callable[[float], int]) -> str:
    """Return a ratio with about two digits of what it exceeds 1 by, rounded outwards."""
    digits = 2 if ratio < 1.2 else 1 if ratio < 10 else 0
    return f"{towards(round(ratio * 10**digits, 6)) / 10**digits:.{digits}f}"


def _join_systems(systems: Sequence[str]) -> str:
    if len(systems) > MAX_NAMED:
        return f"{len(systems)} systems"
    return " or ".join([", ".join(systems[:-1]), systems[-1]] if len(systems) > 1 else systems)


def summarize_run(run_data: RunData) -> str:
    """Return the findings of a run in two to four sentences that can be quoted, the winners first."""
    rankings = rank_all_points(run_data)
    several = len(run_data.systems) > 1
    winners = [_describe_winners(rankings), _describe_ruled_out(rankings)] if several else []
    sentences = [*winners, _describe_peak(run_data), _describe_lead(rankings), _describe_gaps(run_data)]
    return " ".join(sentence for sentence in sentences if sentence)


def _describe_winners(rankings: Sequence[Ranking]) -> str:
    """Count the points at which each system wins, those that are tied, and those that are open."""
    decisions = [ranking.decision for ranking in rankings]
    total = f"{len(decisions)} point{'s' if len(decisions) > 1 else ''} of the map"
    won = Counter(each.leader for each in decisions if each.kind in ("leads", "single") and each.leader).most_common()
    rest = _describe_undecided(decisions)
    if not won:
        if all(each.kind == "none" for each in decisions):
            return "No system sustained any rate that was tried."
        return f"No system is certainly the fastest at any of {total}{f': {rest}' if rest else ''}."
    parts = [f"{system} at {number}{_describe_margin(decisions, system)}" for system, number in won]
    (first, count) = won[0]
    share = f"all {total}" if count == len(decisions) > 1 else f"{count} of {total}"
    parts[0] = f"{first} is the fastest at {share}{_describe_margin(decisions, first)}"
    sentence = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"{sentence}{f'; {rest}' if rest else ''}."


def _describe_margin(decisions: Sequence[PointDecision], system: str) -> str:
    """Return by how much a system leads at its points; at several, the least that is certain at all of them."""
    leads = [each for each in decisions if each.kind == "leads" and each.leader == system]
    alone = sum(each.kind == "single" and each.leader == system for each in decisions)
    if len(leads) == 1 and not alone:
        return f" (by {format_ratio(leads[0].ratio_low, leads[0].ratio_high)})"
    least, highs = min((each.ratio_low or 1.0 for each in leads), default=1.0), [each.ratio_high for each in leads]
    high = max((each or math.inf for each in highs), default=math.inf) if least < SHOWN_RATIO else math.inf
    margin = [f"by {format_ratio(least, high if high < math.inf else None)}"] if leads else []
    return f" ({', '.join([*margin, *([f'alone at {alone}'] if alone else [])])})"


def _describe_undecided(decisions: Sequence[PointDecision]) -> str:
    """Return how many points are tied, open, and without a rate; with the reason if all open ones share it."""
    ties, none = (sum(each.kind == kind for each in decisions) for kind in ("tie", "none"))
    reasons = [each.why for each in decisions if each.kind == "open"]
    shared = f" ({reasons[0]})" if len(set(reasons)) == 1 else ""
    texts = [
        f"{ties} {'is' if ties == 1 else 'are'} tied within {100 * TIE:.0f} %" if ties else "",
        f"{len(reasons)} {'is' if len(reasons) == 1 else 'are'} open{shared}" if reasons else "",
        f"at {none} no system sustained any rate" if none else "",
    ]
    return ", ".join(text for text in texts if text)


def _describe_ruled_out(rankings: Sequence[Ranking]) -> str:
    """Name the systems that are certainly not the fastest where no system certainly is, and at how many points."""
    undecided = [ranking for ranking in rankings if ranking.outcome in ("tie", "open")]
    slower = Counter(
        cell_data.cell.system
        for ranking in undecided
        for cell_data in ranking.cells
        if cell_data.cell.system not in ranking.leaders
        and cell_data.result is not None
        and cell_data.result.status != "unsupported"
    ).most_common()
    counts = [f"{system} at {number}" for system, number in slower]
    if not counts:
        return ""
    return f"At points without a winner, some systems are certainly not the fastest: {', '.join(counts)}."


def _describe_peak(run_data: RunData) -> str:
    results = [cell_data.result for cell_data in run_data.cells]
    rated = [result for result in results if result is not None and _is_rated(result)]
    if not rated:
        return ""
    top = max(rated, key=lambda result: rate_of(result) or 0.0)
    point = _format_point(top.message_bytes, top.cpu_seconds)
    interval = format_result_interval(top)
    return (
        f"The highest rate is {format_claim(top)}{f' ({interval})' if interval else ''}, by {top.system} with {point}."
    )


def _is_rated(result: Result) -> bool:
    return result.status in RATED and rate_of(result) is not None


def _describe_lead(rankings: Sequence[Ranking]) -> str:
    """Name the point with the largest certain lead."""
    leads = [ranking.decision for ranking in rankings if ranking.decision.kind == "leads"]
    largest = max(leads, key=lambda each: each.ratio_low or 1.0, default=None)
    if largest is None or len(leads) == 1 or (largest.ratio_low or 1.0) < MIN_RATIO_REPORTED:
        return ""
    ratio = format_ratio(largest.ratio_low, largest.ratio_high)
    return f"The largest lead is with {_format_point(*largest.point)}: {largest.leader} leads by {ratio}."


def _describe_gaps(run_data: RunData) -> str:
    missing = len(run_data.missing)
    if not missing:
        return ""
    return f"{missing} of {len(run_data.cells)} cells {'has' if missing == 1 else 'have'} no result yet."


def _format_point(size: int, cost: float) -> str:
    return f"{size_text(size)} messages that cost {seconds_text(cost)} of CPU time"
