"""The judge: from the numbers of one trial to Sustained, Overloaded(why) or Invalid(why), by the same rules for every system.

Backlog is offered - processed, with offered counted from the due times, so that back-pressure cannot hide an overload. It is read
only when it means something: for a micro-batch system right after a batch was done. A rate is sustained when the backlog had no
drift over the window *and* came back to its floor (a queue that never empties is the surest sign of overload; a slope alone is
weakest exactly at the limit). After Karimov et al. (ICDE 2018); rules and constants: the project's max-rate-search reference, 4.
"""

from statistics import median
from typing import Literal

from msgspec import Struct

from bench.config.scenario import Objectives
from bench.model.measurement import Measurement, Series

Word = Literal["sustained", "overloaded", "invalid"]


class Verdict(Struct, frozen=True):
    """A word, why, and how much of the offered rate the system did not keep up with (0 when it did)."""

    word: Word
    why: str = ""
    loss: float = 0.0


class Rules(Struct, frozen=True):
    """What is asked of a sustained rate, and how finely (a relative width) it is told apart from an overloaded one."""

    objectives: Objectives = Objectives()
    precision: float = 0.05


DEATHS = ("framework died", "source died")
OFFERED_ENOUGH = 0.98
"""A generator that offered a smaller share than this of what was due measured itself."""
BURN_TOLERANCE = 0.01
JITTER = 0.1
"""Of a batch interval: how much the backlog may differ from batch to batch in a window of four; in longer ones far less."""
LONG_AFTER = 1.4
"""A drain so much longer than the load tells more than the window."""
MAX_FOREIGN = 0.2
"""A machine that did more than this of other work (or lost it to its host) was not the machine that is measured."""
MIN_FOREIGN, FULL = 0.03, 0.97
"""A machine that was full lowers the top rate by as much as it did of other work: more than this, or than half the precision,
is no overload of the system's own."""


def judge(seen: Measurement, rules: Rules) -> Verdict:
    """The verdict on a trial."""
    for look in (_our_fault, _death, _inexact, _disturbed, _drift, _late):
        verdict = look(seen, rules)
        if verdict is not None:
            return verdict
    return Verdict("sustained")


def _our_fault(seen: Measurement, _: Rules) -> Verdict | None:
    if seen.ended == "load died":
        return Verdict("invalid", "the load died")
    if seen.ended == "host gone":
        return Verdict("invalid", seen.note)
    if seen.offered == 0:
        return Verdict("invalid", "nothing was offered")
    if seen.cpu_requested_s > 0.1 and abs(seen.cpu_used_s / seen.cpu_requested_s - 1) > BURN_TOLERANCE:
        return Verdict("invalid", f"burnt {seen.cpu_used_s / seen.cpu_requested_s:.3f} of the CPU time asked for")
    if _foreign_share(seen) > MAX_FOREIGN:
        return Verdict("invalid", f"other work took {_foreign_share(seen):.0%} of this machine")
    if _offered_share(seen) < OFFERED_ENOUGH and not _pushed_back(seen) and not seen.failed:
        return Verdict("invalid", "generator")
    return None


def _foreign_share(seen: Measurement) -> float:
    """Which share of the machine's CPU time went to what is no part of the run, or was stolen from the machine."""
    cpu = seen.cpu
    if not cpu.get("available") or seen.ended in DEATHS:  # what a dead process had used is on nobody's account
        return 0.0
    ours = sum(cpu.get(role, 0.0) for role in ("framework", "source", "load", "harness", "kernel"))
    return max(0.0, cpu["busy"] + cpu["steal"] - ours) / cpu["available"]


def _offered_share(seen: Measurement) -> float:
    """Which share of what was due by the end of the window had been sent by then (or within a blink of it)."""
    late = seen.late * seen.planned.rate
    return 1 - max(0.0, late - 1) / seen.offered


def _pushed_back(seen: Measurement) -> bool:
    """Whether the time during which the source took no more accounts for the generator's being late."""
    return seen.blocked >= 0.9 * seen.late


def _death(seen: Measurement, _: Rules) -> Verdict | None:
    if seen.ended in DEATHS:
        return Verdict("overloaded", seen.ended.replace("framework ", ""), _loss(seen))
    return None


def _inexact(seen: Measurement, rules: Rules) -> Verdict | None:
    """What the tallies say; only of a trial that was drained, since what still waits is not lost."""
    if seen.failed > rules.objectives.loss:
        return Verdict("overloaded", f"the source refused {seen.failed} messages", max(_loss(seen), 0.01))
    if seen.drained:
        counts = {
            "lost": seen.lost,
            "duplicated": seen.duplicated,
            "corrupted": seen.corrupted,
            "out_of_order": seen.out_of_order,
        }
        allowed = {"lost": rules.objectives.loss}
        wrong = [f"{count} {what}" for what, count in counts.items() if count > allowed.get(what, 0)]
        if wrong:
            return Verdict("overloaded", ", ".join(wrong), _loss(seen))
    return None


def _disturbed(seen: Measurement, rules: Rules) -> Verdict | None:
    """An overload that other work on a full machine may have made."""
    foreign, most = _foreign_share(seen), max(MIN_FOREIGN, rules.precision / 2)
    if foreign <= most or seen.cpu["busy"] <= FULL * seen.cpu["available"]:
        return None
    verdict = _drift(seen, rules) or _late(seen, rules)
    if verdict is None or verdict.loss > 3 * foreign:
        return None
    return Verdict("invalid", f"other work took {foreign:.0%} of a full machine")


def _drift(seen: Measurement, rules: Rules) -> Verdict | None:
    if seen.ended == "hopeless":
        return Verdict("overloaded", "backlog grew", _left_behind(seen) or _loss(seen))
    reading = reading_of(seen, rules.precision)
    if reading.overloaded:
        return Verdict("overloaded", "backlog grew", _left_behind(seen) or reading.loss)
    if _offered_share(seen) < OFFERED_ENOUGH:
        return Verdict(
            "overloaded", "the source pushed back", _left_behind(seen) or max(reading.loss, 1 - _offered_share(seen))
        )
    if not seen.drained:
        return Verdict("overloaded", "did not drain", reading.loss)
    return None


def _late(seen: Measurement, rules: Rules) -> Verdict | None:
    wanted, p99 = rules.objectives.p99, seen.from_due.p99
    if wanted is not None and p99 is None and seen.processed:
        return Verdict("invalid", "no latency is known: the framework's hosts have clocks of their own")
    if wanted is not None and p99 is not None and p99 > wanted:
        return Verdict("overloaded", f"p99 {p99:.3g} s above {wanted:g} s")
    return None


class Reading(Struct, frozen=True):
    """What the backlog says: overloaded or not, and the drift as a share of the rate."""

    overloaded: bool
    loss: float


def reading_of(seen: Measurement, precision: float) -> Reading:
    """The backlog of the window, judged by drift and floor."""
    planned = seen.planned
    rows = _instants(seen.series, planned.settle, planned.settle + planned.window, seen.batch_interval)
    if len(rows) < 3:
        return _reading_of_few(seen)
    backlog = [float(b) for _, b in rows]
    drift = _drift_of(rows)
    floor = min(backlog[: max(1, len(rows) // 3)])
    late_floor = min(backlog[int(len(rows) * 0.4) :])
    slack = max(0.004, 0.04 * precision) * planned.rate * planned.window
    jitter = 2 + JITTER * seen.batch_interval * planned.rate * min(1.0, 4 * seen.batch_interval / planned.window) ** 2
    overloaded = late_floor > floor + slack + jitter and drift > max(0.002, 0.1 * precision) * planned.rate
    return Reading(overloaded, min(0.999, max(0.0, drift / planned.rate)))


def _reading_of_few(seen: Measurement) -> Reading:
    """A window in which the processed counter hardly moved: overloaded when more than half of what came was left lying."""
    begin = seen.planned.settle
    rows = [
        row for row in zip(seen.series.at, seen.series.offered, seen.series.processed, strict=True) if row[0] >= begin
    ]
    rows = [row for row in rows if row[0] <= begin + seen.planned.window]
    if not rows:
        return Reading(overloaded=False, loss=0.0)
    growth = (rows[-1][1] - rows[-1][2]) - (rows[0][1] - rows[0][2])
    share = growth / max(1.0, seen.planned.rate * seen.planned.window)
    return Reading(share > 0.5, min(0.999, max(0.0, share)))


def _instants(series: Series, begin: float, end: float, batch_interval: float) -> list[tuple[float, int]]:
    """(time, backlog) at the instants at which backlog means something; the first is dropped when there are more than three."""
    rows = list(zip(series.at, series.offered, series.processed, strict=True))
    pairs = zip([(0.0, 0, 0), *rows[:-1]], rows, strict=True)
    if batch_interval > 0:
        rows = [row for before, row in pairs if row[2] > before[2]]
        found = [(at, offered - processed) for at, offered, processed in rows if begin <= at <= end]
        return found[1:] if len(found) > 3 else found
    step, due, found = (end - begin) / 16, begin, []
    for at, offered, processed in rows:
        if due <= at <= end:
            found.append((at, offered - processed))
            due = at + step * 0.99
    return found


def _drift_of(rows: list[tuple[float, int]]) -> float:
    """Growth of the backlog in messages/s: between the medians of the first and the last quarter, or the first and last reading."""
    span = rows[-1][0] - rows[0][0]
    if span <= 0:
        return 0.0
    quarter = len(rows) // 4
    if quarter < 2:
        return (rows[-1][1] - rows[0][1]) / span
    first, last = (median(b for _, b in part) for part in (rows[:quarter], rows[-quarter:]))
    return (last - first) / (span * (len(rows) - quarter) / (len(rows) - 1))


def _left_behind(seen: Measurement) -> float | None:
    """Which share of the rate a system could not do that was still busy with it long after the load had stopped; None otherwise.

    It was busy all the time, so what it did in all divided by that time is a better reading of its ceiling than the few moments at
    which a micro-batch system shows progress within the window.
    """
    series, done = seen.series, seen.processed + seen.corrupted
    if not (seen.drained and series.at and done) or seen.sent == 0:
        return None
    finished = next(
        (at for at, processed in zip(series.at, series.processed, strict=True) if processed >= done), series.at[-1]
    )
    loaded = seen.sent / seen.planned.rate
    if finished < LONG_AFTER * loaded + seen.batch_interval:
        return None
    return min(0.999, max(0.0, 1 - done / (finished - seen.batch_interval) / seen.planned.rate))


def _loss(seen: Measurement) -> float:
    """The drift of an unfinished trial over whatever part of it there is."""
    series, settle = seen.series, seen.planned.settle
    end = seen.offered / seen.planned.rate  # what follows is the drain
    rows = [
        (at, o - p) for at, o, p in zip(series.at, series.offered, series.processed, strict=True) if at <= end + 1e-9
    ]
    rows = [row for row in rows if row[0] >= min(settle, rows[-1][0] / 2)]
    return min(0.999, max(0.0, _drift_of(rows) / seen.planned.rate)) if len(rows) > 1 else 0.0
