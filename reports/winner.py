"""Who is the best at one point of the grid, and whether this run can say so; and what follows for the whole map."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from bench.measurement import Result
from bench.units import seconds_text, size_text
from reports.evidence import Evidence, Known
from reports.theory import rate_of
from reports.wording import claim_of

Outcome = Literal["clear", "tie", "none"]


class Contest(Struct, frozen=True):
    """Every system at one point of the grid; of `leaders` the first has the highest estimate, the rest may be as good."""

    size: int
    cost: float
    known: tuple[Known, ...]
    leaders: tuple[str, ...]

    @property
    def outcome(self) -> Outcome:
        return "none" if not self.leaders else "clear" if len(self.leaders) == 1 else "tie"

    @property
    def complete(self) -> bool:
        """Whether every system has a result here."""
        return all(known.result is not None for known in self.known)

    @property
    def best(self) -> Result | None:
        return next((known.result for known in self.known if self.leaders[:1] == (known.cell.system,)), None)


def contest_of(size: int, cost: float, known: Sequence[Known]) -> Contest:
    """The contest at one point. A system leads alone only when its sustained rate is above all that any other can reach."""
    results = [one.result for one in known if one.result is not None]
    rated = sorted((result for result in results if rate_of(result) is not None), key=lambda r: -(rate_of(r) or 0.0))
    if not rated:
        return Contest(size, cost, tuple(known), ())
    floor = rated[0].low_hz if rated[0].low_hz is not None else 0.0
    rivals = [result for result in (*rated[1:], *(r for r in results if rate_of(r) is None)) if _reach(result) > floor]
    return Contest(size, cost, tuple(known), (rated[0].system, *(rival.system for rival in rivals)))


def _reach(result: Result) -> float:
    """The highest rate that a system may still have; nothing for one that was not seen to run."""
    if result.status in ("failed", "unsupported"):
        return 0.0
    if result.high_hz is not None:
        return result.high_hz
    return float("inf") if rate_of(result) is not None else 0.0


def contests_of(evidence: Evidence) -> tuple[Contest, ...]:
    """One contest for each point of the grid, cheap and small ones first."""
    return tuple(contest_of(size, cost, evidence.at(size, cost)) for cost in evidence.costs for size in evidence.sizes)


def finding_of(evidence: Evidence) -> str:
    """What the run found, in two or three sentences that a person can quote."""
    contests = contests_of(evidence)
    standings = _standings(contests) if len(evidence.systems) > 1 else ""
    sentences = [standings, _peak(evidence), _contrast(contests), _gaps(evidence)]
    return " ".join(sentence for sentence in sentences if sentence)


def _standings(contests: Sequence[Contest]) -> str:
    """Who leads where; points at which a system is still missing are left out, since it may turn out the best."""
    finished = [contest for contest in contests if contest.complete]
    held = [contest for contest in finished if contest.outcome != "none"]
    ties = sum(contest.outcome == "tie" for contest in held)
    wins = Counter(contest.leaders[0] for contest in held if contest.outcome == "clear").most_common()
    if not finished:
        return "At no point of the map have all systems been measured yet."
    if not held:
        return "No system sustained any rate that was tried."
    if not wins:
        return "At no point of the map can one system be told to be the best."
    (first, count), *others = wins
    share = f"all {len(held)}" if count == len(held) else f"{count} of {len(held)}"
    parts = [f"{first} sustains the highest frequency at {share} points of the map"]
    parts += [f"{system} at {number}" for system, number in others]
    sentence = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"{sentence}; {ties} {'is' if ties == 1 else 'are'} too close to call." if ties else f"{sentence}."


def _peak(evidence: Evidence) -> str:
    rated = [known.result for known in evidence.cells if known.result is not None and rate_of(known.result) is not None]
    if not rated:
        return ""
    top = max(rated, key=lambda result: rate_of(result) or 0.0)
    return f"The highest of all is {claim_of(top)}, by {top.system} with {_point(top.message_bytes, top.cpu_seconds)}."


def _contrast(contests: Sequence[Contest]) -> str:
    """Where the choice matters most, among measured rates only."""
    ratios = []
    for contest in contests:
        results = [known.result for known in contest.known if known.result is not None and known.result.status == "measured"]
        rates = sorted(((result.estimate_hz or 0.0, result.system) for result in results), reverse=True)
        if len(rates) > 1 and rates[-1][0] > 0:
            ratios.append((rates[0][0] / rates[-1][0], rates[0][1], rates[-1][1], contest))
    if not ratios:
        return ""
    ratio, best, worst, contest = max(ratios, key=lambda found: found[0])
    if ratio < 1.5:
        return ""
    where = _point(contest.size, contest.cost)
    return f"The choice matters most with {where}, where {best} reaches {float(f'{ratio:.2g}'):g} times the rate of {worst}."


def _gaps(evidence: Evidence) -> str:
    missing = len(evidence.missing)
    return f"{missing} of {len(evidence.cells)} cells {'has' if missing == 1 else 'have'} no result yet." if missing else ""


def _point(size: int, cost: float) -> str:
    return f"{size_text(size)} messages that cost {seconds_text(cost)}"
