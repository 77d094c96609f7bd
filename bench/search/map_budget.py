"""The budget of a map: the cell that is visited next, and the time that its trials get.

A visit lets the search of one cell go on for a while. Without a total, every cell is visited once. With a total, the
first pass visits every cell for about the same time; then each visit goes where it changes most of what the map says.
Everything here is a function of the states of the cells and of the time that is left.

Assumption: the width of an interval in ln(rate) shrinks with the square root of the time of its trials.
"""

import math
from collections.abc import Iterator, Sequence, Set

from msgspec import Struct

from bench.analysis.winners import decide_points
from bench.config.scenario import Scenario
from bench.model.cell import Cell
from bench.model.measurement import Result

FIRST_SHARE = 0.7
"""Share of the total for the first pass."""
MAX_OVERHEAD_SHARE = 0.3
"""Greatest share of a first visit that its overhead takes from its trials: what starts once is no reason to hurry."""
WITHOUT_NEIGHBOUR = 2.0
"""The first cell of a system has no neighbour that shows where its capacity may lie: it needs so much more, unless
the warm-up of the system shows it."""
MIN_VISIT_S = 4.0
"""Shortest first visit, in seconds of trials; every cell gets one, however small the total is."""
MIN_CELL_S = 8.0
"""Seconds of a total for each cell, below which the first pass alone takes longer than the total."""
TRIALS_PER_VISIT = 2.0
"""A later visit has time for at least so many trials of the cell's mean duration, where the total allows it."""
MIN_OVERHEADS = 4.0
"""A later visit is so many times as long as its overhead, where the cell had at least that much time before."""
MAX_VISITS_WITHOUT_INTERVAL = 4
"""A cell that has not both ends of its interval after so many visits gets no further one."""
WIDTH_WITHOUT_INTERVAL = 2.0
"""Width in ln(rate) that a cell without both ends counts as on its first visit; divided by the visits it had."""
MAX_MEAN_TIMES = 2.0
"""The gain of a cell that had more than so many times the mean time is the lower the longer it had: such a cell is
still wide, so that its interval shrinks slower than with the square root of the time."""
SIMILAR_GAIN = 0.7
"""A cell of the system that was visited last is preferred from this share of the highest gain on."""
PASS_SHARE = 0.5
"""Of the time that was left when a pass ended, after which the next one ends."""
MAX_CLOSING_SHARE = 0.5
"""An open point comes before wider intervals only if this share of the time left is enough to close it."""
DISTURBANCES = ("other work", "the generator stalled")
"""In the reason of a cell that was not measured: what another visit may not meet."""
DEFAULT_OVERHEAD_S = 2.0
"""Of a visit to a system that was not visited yet."""
AROUND_WINDOW_S = 2.0
"""About what a latency trial takes besides its window."""
MAX_LATENCY_SHARE = 0.5
"""Greatest share of a total that is kept for latency trials; `total_warning` counts on it."""
LIMITED_SHARE = 0.8
"""From this share of the generator's limit on, an estimate that the generator limits stays limited by it."""


class CellState(Struct, frozen=True):
    """The state of a cell between two visits; times in seconds."""

    cell: Cell
    result: Result | None = None
    """the current one; None before the first visit has ended"""
    visits: int = 0
    seconds: float = 0.0
    """of all its visits by the clock: trials, opening the cell, services, warm-ups, restarts"""
    trials: int = 0
    trial_s: float = 0.0
    """of its trials"""
    finished: bool = False
    """whether its search wants no further trial, however much time it gets"""
    decides: bool = False
    """whether its interval decides a point of the grid whose winner is not known"""
    refused_s: float = 0.0
    """longest time of a visit since the last trial in which the search planned none, because no trial fitted"""
    min_s: float = MIN_VISIT_S
    """time of the fewest trials that give a result"""
    overhead_s: float = DEFAULT_OVERHEAD_S
    """of a visit to a cell of this system, besides its trials; a mean"""
    warms_up: bool = False
    """whether the first visit to its system begins with a warm-up, which shows where its capacity may lie"""
    retries: int = 0
    """visits that began anew because other work had disturbed all earlier trials"""
    workers: int = 1
    """of the load generator, on the last visit"""
    more_workers: int | None = None
    """of the load generator, on the next visit if it limits the cell; None if it cannot have more"""


class Visit(Struct, frozen=True):
    """A visit to make."""

    cell: Cell
    number: int = 1
    """of this cell's visits, from 1"""
    seconds: float | None = None
    """for the trials of this visit; None: `search.budget` for all trials of the cell"""
    retry: bool = False
    """whether the search forgets the invalid trials: other work disturbed them, or more workers send from now on"""
    workers: int = 1
    """of the load generator"""
    latency: bool = False
    """whether only the latency trials are left to make, after the last pass of a total"""


class _Option(Struct, frozen=True):
    """A possible visit: `rank` 0 is chosen before 1, and then the highest gain: width per second."""

    visit: Visit
    rank: int
    gain: float


def next_single_visit(states: Sequence[CellState]) -> Visit | None:
    """Return the next visit of a map without a total.

    Each cell once; then again those that other work disturbed; then those that the load generator limits, with more of
    its workers.

    Args:
        states: All cells in the order of the run.
    """
    for state in states:
        if state.result is None:
            return Visit(state.cell, state.visits + 1, workers=state.workers)
    for state in states:
        if is_disturbed(state.result) and state.retries == 0 and state.trials > 0:
            return Visit(state.cell, state.visits + 1, retry=True, workers=state.workers)
    for state in states:
        if state.more_workers is not None and is_generator_limited(state.result):
            return Visit(state.cell, state.visits + 1, retry=True, workers=state.more_workers)
    return None


def next_visit(
    states: Sequence[CellState], remaining_s: float, *, precision: float, system: str | None = None
) -> Visit | None:
    """Return the next visit of a map with a total; None when no visit is worth its time or the total is used.

    First every cell without a result, in the order of the run. Then, with decreasing priority: cells without both ends
    of their interval, with more workers where the load generator limits them; cells that decide an open point which
    half of the time left can close; the other cells whose interval is wider than the precision. Within one of these
    groups, the cell whose interval shrinks most per second.

    Args:
        states: All cells in the order of the run.
        remaining_s: Seconds of the total that are left; the total is this and the seconds of all states.
        precision: Relative width that the scenario asks for.
        system: The system that was visited last: staying there saves time.
    """
    first = next((state for state in states if state.result is None), None)
    if first is not None:
        return Visit(first.cell, first.visits + 1, _first_seconds(first, states, remaining_s), workers=first.workers)
    options = list(_list_options(states, remaining_s, precision))
    rank = min((option.rank for option in options), default=0)
    highest = max((option.gain for option in options if option.rank == rank), default=0.0)
    similar = [option for option in options if option.rank == rank and option.gain >= SIMILAR_GAIN * highest]
    here = [option for option in similar if option.visit.cell.system == system]
    best = max(here or similar, key=lambda option: option.gain, default=None)
    return best.visit if best is not None else None


def decisive_cells(results: Sequence[Result]) -> Set[Cell]:
    """Return the cells that may be the best at a point of the map whose winner is open."""
    undecided = [decision for decision in decide_points(results) if decision.kind == "open"]
    candidates = {(decision.point, system) for decision in undecided for system in decision.candidates}
    return {
        result.cell for result in results if ((result.message_bytes, result.cpu_seconds), result.system) in candidates
    }


def ends_pass(left: float, after_last: float, *, every: bool) -> bool:
    """Return True if a pass ends: every cell has a result, and half of the time is used that was left before.

    Args:
        left: Seconds of the total that are left.
        after_last: The same when the last pass ended; inf in the first one.
        every: Whether every cell has a result.
    """
    return every and 0 < left <= PASS_SHARE * after_last


def latency_seconds(scenario: Scenario) -> float:
    """Return about how long the latency trials of one cell take; 0 without any."""
    latency = scenario.latency
    return DEFAULT_OVERHEAD_S + len(latency.at) * (float(latency.window) + AROUND_WINDOW_S) if latency.at else 0.0


def search_seconds(scenario: Scenario, cells: int) -> float | None:
    """Return the seconds of a total for the search of so many cells; None without one. The rest is for latency."""
    if scenario.search.total is None:
        return None
    total = float(scenario.search.total)
    return total - min(cells * latency_seconds(scenario), MAX_LATENCY_SHARE * total)


def total_warning(scenario: Scenario, cells: int) -> str | None:
    """Return why a total is too small for a number of cells, in a sentence; None where it is not, or not set."""
    total, of_search, least = scenario.search.total, search_seconds(scenario, cells), MIN_CELL_S * cells
    if total is None or of_search is None or of_search >= least:
        return None
    kept = f", {total - of_search:g} s of it for latency," if scenario.latency.at else ""
    enough = least + min(cells * latency_seconds(scenario), least)  # MAX_LATENCY_SHARE is a half
    return (
        f"search.total: {total:g} s{kept} for {cells} cells is less than {MIN_CELL_S:g} s a cell; every cell is visited"
        f" once, which takes longer than the total; give at least {enough:g} s"
    )


def is_disturbed(result: Result | None) -> bool:
    """Return True if a cell has no rate because of what happened beside it, and is worth another visit."""
    reason = result.reason or "" if result is not None and result.status == "not-measured" else ""
    return any(cause in reason for cause in DISTURBANCES)


def is_generator_limited(result: Result | None) -> bool:
    """Return True if a cell has no upper end because our own load generator could not send more."""
    if result is None or result.status != "lower-bound":
        return False
    return "generator" in (result.reason, result.limited_by)


def interval_width(result: Result) -> float | None:
    """Return the width of a result's interval in ln(rate); None without both ends."""
    low, high = result.low_hz, result.high_hz
    return math.log(high / low) if low and high and high >= low else None


def _first_seconds(state: CellState, states: Sequence[CellState], remaining_s: float) -> float:
    """Return the time of a first visit: an equal share of the first pass, or of what is left of the total.

    A cell that was visited and whose result is lost needs none: its trials are in the journal.
    """
    if state.visits:
        return 0.0
    left = max(0.0, remaining_s)
    total = left + sum(each.seconds for each in states)
    new = [each for each in states if each.result is None]
    known = {each.cell.system for each in states if each.result is not None}
    unknown = {each.cell.system for each in states if not each.warms_up}
    parts = WITHOUT_NEIGHBOUR if state.cell.system in unknown - known else 1.0
    every = len(states) + (WITHOUT_NEIGHBOUR - 1) * len(unknown)
    rest = len(new) + (WITHOUT_NEIGHBOUR - 1) * len(unknown - known)
    share = min(FIRST_SHARE * total / every, left / rest) * parts
    return max(state.min_s * parts, share - min(state.overhead_s, MAX_OVERHEAD_SHARE * share))


def _list_options(states: Sequence[CellState], remaining_s: float, precision: float) -> Iterator[_Option]:
    """Yield the visits of a later pass that fit into the time left and have a gain."""
    mean_s = (remaining_s + sum(state.seconds for state in states)) / len(states)
    for state in states:
        result = state.result
        workers = state.more_workers if is_generator_limited(result) else None
        ended = state.finished and not _is_tried_again(state, states)
        over = ended or (result is not None and (result.precision_reached or _cannot_be_exceeded(result)))
        if result is None or (over and workers is None):
            continue
        width = interval_width(result)
        if width is None and state.visits >= MAX_VISITS_WITHOUT_INTERVAL:
            continue
        seconds = _later_seconds(state, width, remaining_s - state.overhead_s, precision)
        if seconds is None:
            continue
        # below the precision without being finished: the search knows better, and half of it is a goal
        goal = precision if (width or math.inf) > precision else precision / 2
        before = WIDTH_WITHOUT_INTERVAL / state.visits if width is None else width
        after = max(goal, before * math.sqrt(state.trial_s / (state.trial_s + seconds)))
        expected = min(1.0, MAX_MEAN_TIMES * mean_s / max(state.seconds, 1.0))
        gain = expected * (before - after) / (seconds + state.overhead_s)
        if gain > 0:
            retry = is_disturbed(result) or workers is not None
            visit = Visit(state.cell, state.visits + 1, seconds, retry=retry, workers=workers or state.workers)
            decisive = state.decides and _is_separable(state, states, remaining_s)
            yield _Option(visit, 0 if width is None else 1 if decisive else 2, gain)


def _is_tried_again(state: CellState, states: Sequence[CellState]) -> bool:
    """Return True once for a cell whose search ended by invalid trials, or by an error that its system has not always.

    A system that cannot be started would spend the time of the others.
    """
    if is_disturbed(state.result):
        return state.retries == 0
    others = [other.result for other in states if other.cell.system == state.cell.system and other.result is not None]
    works = any(other.low_hz is not None or other.high_hz is not None for other in others)
    return state.result is not None and state.result.was_ended_by_error and state.visits == 1 and works


def _later_seconds(state: CellState, width: float | None, available: float, precision: float) -> float | None:
    """Return the time of a later visit: what the precision needs, but at most half as much again as was spent.

    Up to as much again where a shorter visit would be mostly overhead. None if not even one trial fits into the time
    available.
    """
    trial = state.trial_s / state.trials if state.trials else MIN_VISIT_S
    if available <= 0 or available < max(trial, 2 * state.refused_s):
        return None
    needed = math.inf if width is None else state.trial_s * ((width / precision) ** 2 - 1)
    most = min(state.trial_s, max(state.trial_s / 2, MIN_OVERHEADS * state.overhead_s))
    wanted = max(TRIALS_PER_VISIT * trial, 2 * state.refused_s, min(needed, most))
    return min(available, wanted)


def _cannot_be_exceeded(result: Result) -> bool:
    """Return True if more trials cannot bring an estimate below what our own load generator reaches."""
    if result.status != "lower-bound" or result.reason != "generator":
        return False
    return result.generator_hz is None or (result.estimate_hz or 0.0) >= LIMITED_SHARE * result.generator_hz


def _is_separable(state: CellState, states: Sequence[CellState], remaining_s: float) -> bool:
    """Return True if a share of the time left separates a cell's interval from an overlapping one of its point."""
    return any(
        _separation_seconds(state, other) <= MAX_CLOSING_SHARE * remaining_s
        for other in states
        if other.cell.system != state.cell.system and _point(other.cell) == _point(state.cell)
    )


def _separation_seconds(one: CellState, other: CellState) -> float:
    """Return the further time after which two overlapping intervals no longer overlap; infinite if they never will."""
    if one.result is None or other.result is None:
        return math.inf
    rates = one.result.estimate_hz, other.result.estimate_hz
    widths = interval_width(one.result), interval_width(other.result)
    if not rates[0] or not rates[1] or widths[0] is None or widths[1] is None:
        return math.inf
    distance, both = abs(math.log(rates[0] / rates[1])), (widths[0] + widths[1]) / 2
    if distance == 0 or distance > both:  # equal, or apart already
        return math.inf
    return (one.trial_s + other.trial_s) * ((both / distance) ** 2 - 1)


def _point(cell: Cell) -> tuple[object, ...]:
    return cell.message_bytes, cell.sizes, cell.cpu_seconds
