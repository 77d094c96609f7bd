"""Advice: the workers and cores that a system needs for a rate, from the results of a map.

The model is that of DS2: a worker that is never without work has a true rate, here the maximum rate of the map divided
by the workers that were running, and workers add up. The lower end of the interval says how many workers are enough,
its upper end how few may be. That the rate grows in proportion to the workers is an assumption beyond those that were
measured; docs/decisions/0601-advice-from-a-map.md says why one run supports no other.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from bench.elasticity.cell_rates import PointRates, rates_at
from bench.elasticity.parallelism import round_up
from bench.model.measurement import Result
from bench.units import rate_text

LIMITS = {
    "source": "the source pushed back",
    "network": "the network was full",
    "disk": "the disk of the source was full",
}
"""By `Result.limited_by`: limits that more workers do not change."""
ROLES = ("framework", "source", "load")
"""Of `Result.cpu_share`: whose cores are counted."""
NO_OBSTACLE = {"cpu", "generator"}
"""Limits that do not speak against more workers."""


class Question(Struct, frozen=True):
    """The load that is to be sustained."""

    rate_hz: float
    message_bytes: int
    cpu_seconds: float
    headroom: float = 0.0
    """share of the capacity that is to stay free at this rate, below 1"""

    @property
    def capacity_hz(self) -> float:
        """Return the maximum rate that a system needs, in messages/s."""
        return self.rate_hz / (1 - self.headroom)


class Deployed(Struct, frozen=True):
    """The deployment of a system whose maximum rates a map holds."""

    workers: int
    """processes, tasks or PEs that processed messages at once"""
    cores: int
    """that the framework could use"""
    setting: str = ""
    """of a scenario, for the number of workers; empty where it cannot be set"""
    link: float | None = None
    """bytes/s at which messages can reach the framework; None where it is not known"""


class Amount(Struct, frozen=True):
    """A number of workers or cores; an end that is not known is None."""

    enough: int | None = None
    """by the lower end of the rate's interval"""
    least: int | None = None
    """fewer are not enough, by its upper end"""


class Advice(Struct, frozen=True, kw_only=True):
    """The advice for one system. The rates are the maximum of the measured deployment at the point asked for."""

    system: str
    workers: Amount = Amount()
    cores: Amount = Amount()
    partitions: int | None = None
    """of the source, so that all workers have something to read; None where it has none"""
    measured: Deployed | None = None
    low_hz: float | None = None
    estimate_hz: float | None = None
    high_hz: float | None = None
    interpolated: tuple[str, ...] = ()
    """axes ("size", "cost") on which the point lies between measured cells"""
    extrapolated: tuple[str, ...] = ()
    """axes ("size", "cost", "cores") on which the answer lies beyond what was measured"""
    notes: tuple[str, ...] = ()
    reason: str = ""
    """why there is no advice; empty if there is"""


def advise(question: Question, results: Sequence[Result], deployed: Deployed) -> Advice:
    """Return the advice for one system.

    Args:
        question: The load.
        results: The results of the system, one at least.
        deployed: The deployment that they are of.
    """
    usable = min(deployed.workers, deployed.cores)
    rates = rates_at(results, question.message_bytes, question.cpu_seconds, usable)
    known = Advice(
        system=results[0].system,
        measured=deployed,
        low_hz=rates.low_hz,
        estimate_hz=rates.estimate_hz,
        high_hz=rates.high_hz,
        interpolated=rates.interpolated,
        extrapolated=rates.extrapolated,
        notes=rates.notes,
    )
    if reason := rates.reason or _why_not(question, deployed, rates):
        return replace(known, reason=reason)
    if not deployed.setting:
        cores = deployed.cores
        return replace(known, workers=Amount(deployed.workers, deployed.workers), cores=Amount(cores, cores))
    workers = Amount(_instances(question, rates.low_hz, deployed), _instances(question, rates.high_hz, deployed))
    return _with_workers(known, workers, question, rates)


def cheapest_first(advice: Sequence[Advice]) -> list[Advice]:
    """Return advice by its cores and workers; then "at least so many", then the systems without advice."""

    def price(each: Advice) -> tuple[bool, int, int, int, str]:
        cores, workers = each.cores, each.workers
        known = 0 if cores.enough is not None else 1 if cores.least is not None else 2
        return (
            bool(each.reason),
            known,
            cores.enough or cores.least or 0,
            workers.enough or workers.least or 0,
            each.system,
        )

    return sorted(advice, key=price)


def _why_not(question: Question, deployed: Deployed, rates: PointRates) -> str:
    """Return why no number of workers is known to be enough; empty if there may be one."""
    needed = question.capacity_hz
    if reason := why_link_is_full(question, deployed):
        return reason
    if rates.low_hz is None and rates.high_hz is None:
        return "the map has no limit of its rate at this point"
    if deployed.setting or (rates.low_hz is not None and needed <= rates.low_hz):
        return ""
    fixed = "no setting gives it more workers"
    if rates.high_hz is not None and needed > rates.high_hz:
        return f"it takes {rate_text(rates.high_hz)} at most, and {fixed}"
    least = f"; {rate_text(rates.low_hz)} are certain" if rates.low_hz is not None else ""
    return f"it is not certain that it takes {rate_text(needed)}{least}, and {fixed}"


def why_link_is_full(question: Question, deployed: Deployed) -> str:
    """Return why the network does not carry the load; empty if it does, or its bandwidth is not known."""
    if deployed.link is None or question.capacity_hz <= deployed.link / question.message_bytes:
        return ""
    most = rate_text(deployed.link / question.message_bytes)
    return f"the network carries {most} of this size at most, with any number of workers"


def _instances(question: Question, rate_hz: float | None, deployed: Deployed) -> int | None:
    """Return the workers whose true rates add up to the capacity; None if the rate of all measured ones is unknown."""
    return None if rate_hz is None else round_up(question.capacity_hz * deployed.workers / rate_hz)


def _with_workers(advice: Advice, workers: Amount, question: Question, rates: PointRates) -> Advice:
    """Return the advice with so many workers, their cores, and what the user should know of both."""
    deployed, most = advice.measured, workers.enough or workers.least
    assert deployed is not None
    assert most is not None  # one of the two is known here
    each = _cores_per_worker(deployed, rates.rests_on)
    cores = Amount(*(None if count is None else round_up(count * each) for count in (workers.enough, workers.least)))
    beyond = ("cores",) if most != deployed.workers else ()
    notes = [*advice.notes, *_bound_notes(question, rates.rests_on)]
    if most > deployed.workers:
        notes += _growth_notes(question, deployed, rates)
    elif most < deployed.workers and rates.low_hz is not None:
        notes.append(f"the {deployed.workers} measured workers sustain it; that fewer do is the model's answer")
    extrapolated = (*advice.extrapolated, *beyond)
    return replace(advice, workers=workers, cores=cores, extrapolated=extrapolated, notes=tuple(notes))


def _cores_per_worker(deployed: Deployed, results: Sequence[Result]) -> float:
    """Return the cores for each worker: those that were used, at least one for each worker up to all cores.

    What else ran on them, the source and the load generator, is counted with the workers. Where it is not known how
    many were used, since a part ran on other hosts, all of them count.
    """
    shares = [[result.cpu_share.get(role) for role in ROLES] for result in results]
    used = max(deployed.cores if None in each else sum(filter(None, each)) for each in shares)
    return min(deployed.cores, max(used, deployed.workers)) / deployed.workers


def _growth_notes(question: Question, deployed: Deployed, rates: PointRates) -> list[str]:
    """Return what speaks for and against more workers than were measured."""
    limits = {result.limited_by for result in rates.rests_on}
    known = [text for limit, text in LIMITS.items() if limit in limits]
    notes = [f"{' and '.join(known)}: more workers may not help"] if known else []
    if not known and limits - NO_OBSTACLE:
        notes.append("it is not known what limited it: more workers may not help")
    if rates.estimate_hz is not None and question.cpu_seconds > 0:
        share = rates.estimate_hz * question.cpu_seconds / deployed.cores
        notes.append(f"{share:.0%} of the cores' time was the messages' own cost; the rest is assumed to grow as well")
    return notes


def _bound_notes(question: Question, results: Sequence[Result]) -> list[str]:
    """Return the soft bounds of the source that the load exceeds; they do not grow with the workers."""
    size = question.message_bytes
    found = [(bound.name, bound.hz * result.message_bytes / size) for result in results for bound in result.soft_bounds]
    rates = dict(sorted(found, key=lambda each: -each[1]))  # the lowest of each name stays
    return [
        f"more than the {name} of the source carries for long ({rate_text(hz)})"
        for name, hz in rates.items()
        if question.capacity_hz > hz
    ]
