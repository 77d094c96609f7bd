"""What limits a cell, told from what its trials saw: one word, one sentence, and the figures that it rests on.

The trial just above the top rate says why more was not possible; the confirmed one says what was in use. What no probe saw is not
guessed: then the limit is "not known", with the figures that rule the others out.
"""

from typing import Literal

from msgspec import Struct

from bench.analysis.bounds import reached_bound
from bench.model.measurement import Measurement
from bench.units import rate_text, seconds_text, size_text
from reports.data.derived import bound_of, cores_of, given_cores, rate_of
from reports.data.run_data import CellData, JudgedTrial, RunData

Kind = Literal[
    "the work", "framework CPU", "broker CPU", "shared CPU", "one thread", "batches", "source", "network", "disk", "garbage",
    "generator", "latency", "died", "time", "not known",
]  # fmt: skip
BUSY = 0.9
"""Of all cores: a machine that is busier has none to spare."""
NEAR = 0.85
"""Of a bound: whoever comes nearer is limited by it."""
STANDSTILL = 0.25
"""Of the time: a JVM that collects garbage for longer is limited by that, whatever its cores do."""
IDLE = 0.6
"""Of the cores that it has: a framework that uses less is waiting for something."""

JVMS = {"framework": "framework’s JVM", "source": "broker’s JVM"}


class Limit(Struct, frozen=True):
    """What limits a cell: `sentence` says it, `evidence` with which figures."""

    kind: Kind
    sentence: str
    evidence: str = ""


def limit_of(run_data: RunData, known: CellData) -> Limit | None:
    """What limits a cell; None where it has no rate, or no trial to tell it from."""
    if known.result is None or known.result.status in ("unsupported", "failed") or not known.trials:
        return None
    framework = known.cell.framework
    above, cores, given = _trial_above(known), cores_of(run_data, framework), given_cores(run_data, framework)
    seen = above or known.deciding
    if known.result.reason == "generator":
        return _generator(known)
    found = _theory(run_data, known)
    if found is None and above is not None:
        found = (
            _verdict(above)
            or _probed(run_data, above.seen)
            or (_cpu(above.seen, cores, given) if cores and given else None)
        )
    if found is None and known.result.status == "lower-bound" and known.result.reason == "budget":
        return Limit("time", "The time allowed for this cell was spent before its limit was met.", _used(seen, cores))
    if found is None and known.result.reason == "highest":
        return Limit("not known", "It sustained the highest rate that the scenario asks for.", _used(seen, cores))
    return found or Limit("not known", "No probe of this run was at its limit.", _used(seen, cores))


def _trial_above(known: CellData) -> JudgedTrial | None:
    """The overloaded trial that is nearest above what was sustained; one below it, of a cold system, says nothing."""
    cached_resource = known.deciding
    top = (
        cached_resource.seen.planned.rate
        if cached_resource is not None and cached_resource.verdict.word == "sustained"
        else 0.0
    )
    over = [one for one in known.trials if one.verdict.word == "overloaded" and one.seen.planned.purpose != "warm-up"]
    return min(
        (one for one in over if one.seen.planned.rate > top), key=lambda one: one.seen.planned.rate, default=None
    )


def _generator(known: CellData) -> Limit:
    late = [one.seen for one in known.trials if one.verdict.word == "invalid" and one.verdict.why == "generator"]
    if not late:
        reached = known.result.generator_hz if known.result is not None else None
        return Limit(
            "generator", "Our own generator could not send more.", f"it reached {rate_text(reached)}" if reached else ""
        )
    seen = min(late, key=lambda trial: trial.planned.rate)
    at, behind, blocked = rate_text(seen.planned.rate), seconds_text(seen.late), seconds_text(seen.blocked)
    figures = f"at {at} it was {behind} late; the source refused for {blocked}"
    return Limit("generator", "Our own generator could not send more; the system may well take it.", figures)


def _theory(run_data: RunData, known: CellData) -> Limit | None:
    bound, rate = bound_of(run_data, known), rate_of(known.result)
    if known.result is not None and rate is not None and (reached := reached_bound(rate, known.result.soft_bounds)):
        figures = f"{rate_text(rate)} is {rate / reached.hz:.0%} of {rate_text(reached.hz)}"
        kind: Kind = "disk" if reached.name == "disk" else "network"
        return Limit(kind, f"The source’s {kind} is full with what it makes of each message.", figures)
    if bound is None or rate is None or rate < NEAR * bound.hertz:
        return None
    figures = f"{rate_text(rate)} is {rate / bound.hertz:.0%} of {rate_text(bound.hertz)}"
    if bound.kind == "network":
        return Limit(
            "network", "The link to the source is full.", f"{figures}, {size_text(rate * known.cell.message_bytes)}/s"
        )
    return Limit("the work", "The messages’ own CPU cost takes nearly all cores.", f"{figures}, cores ÷ cost")


def _verdict(above: JudgedTrial) -> Limit | None:
    """What the judge itself named."""
    seen, why = above.seen, above.verdict.why
    at = f"at {rate_text(seen.planned.rate)}"
    if seen.ended in ("framework died", "source died"):
        return Limit(
            "died", f"The {seen.ended.removesuffix(' died')} dies above this rate.", f"{at}: {seen.note or seen.ended}"
        )
    if why.startswith("p99"):
        return Limit(
            "latency", "Above this rate the latency asked for is missed; the system could do more.", f"{at}: {why}"
        )
    return None


def _probed(run_data: RunData, seen: Measurement) -> Limit | None:
    """What the probes of garbage collection, network and disk say of an overloaded trial."""
    span, site, at = (
        seen.cpu.get("seconds") or seen.planned.window,
        run_data.record.site,
        f"at {rate_text(seen.planned.rate)}",
    )
    for role, name in JVMS.items():
        share = seen.usage.get(role, {}).get("gc_seconds", 0.0) / span
        if share >= STANDSTILL:
            return Limit(
                "garbage", f"The {name} stands still while it collects garbage.", f"{at} for {share:.0%} of the time"
            )
    sent, received, stored = (
        _most(seen, names) / span
        for names in (("link_sent_bytes",), ("link_received_bytes",), ("read_bytes", "written_bytes"))
    )
    if site.bandwidth is not None and max(sent, received) >= NEAR * site.bandwidth:
        return Limit(
            "network",
            "The network is full.",
            f"{at} {size_text(max(sent, received))}/s of {size_text(site.bandwidth)}/s",
        )
    if site.disk is not None and stored >= NEAR * site.disk:
        return Limit("disk", "The disk has no time left.", f"{at} {size_text(stored)}/s of {size_text(site.disk)}/s")
    return None


def _most(seen: Measurement, names: tuple[str, ...]) -> float:
    """The bytes of these kinds together, of the role that has most of them."""
    return max((sum(used.get(name, 0.0) for name in names) for used in seen.usage.values()), default=0.0)


def _cpu(seen: Measurement, cores: int, given: int) -> Limit | None:
    """What the accounts of the CPU say of an overloaded trial of a framework that can use `given` of the system's cores."""
    if "framework" not in seen.cpu or "source" not in seen.cpu:
        return None  # somewhere else, where nobody looked
    span = seen.cpu.get("seconds") or seen.planned.window
    used = {role: seen.cpu.get(role, 0.0) / span for role in ("framework", "source", "load", "busy")}
    of_all = round(seen.cpu.get("available", 0.0) / span) or cores
    figures = _used_text(seen, used, of_all)
    if used["busy"] >= BUSY * of_all or used["framework"] + used["source"] >= BUSY * cores:
        return _busy_machine(used, figures)
    if used["framework"] >= BUSY * given > BUSY:
        return Limit("framework CPU", f"The framework uses all of the {given} cores it was given.", figures)
    if 0.9 <= used["framework"] <= 1.1 and of_all > 1:
        return Limit(
            "one thread", "The framework uses one core and no more, as a stage does that runs in one thread.", figures
        )
    if _batches_take_longer(seen):
        return Limit(
            "batches",
            "Batches take longer than their interval although cores are free: what scheduling and committing costs.",
            figures,
        )
    if seen.blocked > 0.2 * seen.planned.window:
        return Limit(
            "source",
            "The source took no more, although cores are free.",
            f"{figures}; it refused for {seconds_text(seen.blocked)}",
        )
    return None


def _busy_machine(used: dict[str, float], figures: str) -> Limit:
    """Whose work fills the machine."""
    if used["load"] > max(used["framework"], 0.35 * used["busy"]):
        return Limit(
            "shared CPU",
            "All cores are busy, most with our generator, which shares this machine with the system.",
            figures,
        )
    if used["source"] > used["framework"]:
        return Limit("broker CPU", "All cores are busy, most with the source’s servers.", figures)
    return Limit("framework CPU", "All cores are busy, most with the framework.", figures)


def _batches_take_longer(seen: Measurement) -> bool:
    """Whether a micro-batch system shows its progress less often than once an interval."""
    if seen.batch_interval <= 0:
        return False
    series, begin = seen.series, seen.planned.settle
    moved = [
        at
        for at, before, now in zip(series.at[1:], series.processed, series.processed[1:], strict=False)
        if now > before
    ]
    within = [at for at in moved if begin <= at <= begin + seen.planned.window]
    return len(within) > 1 and (within[-1] - within[0]) / (len(within) - 1) > 1.15 * seen.batch_interval


def _used(judged: JudgedTrial | None, cores: int | None) -> str:
    if judged is None or cores is None or not judged.seen.cpu.get("busy") or "framework" not in judged.seen.cpu:
        return ""
    seen = judged.seen
    span = seen.cpu.get("seconds") or seen.planned.window
    return _used_text(
        seen, {role: seen.cpu.get(role, 0.0) / span for role in ("framework", "source", "load", "busy")}, cores
    )


def _used_text(seen: Measurement, used: dict[str, float], cores: int) -> str:
    roles = ", ".join(
        f"{name} {used[role]:.2f}"
        for role, name in (("framework", "framework"), ("source", "broker"), ("load", "generator"))
    )
    return f"at {rate_text(seen.planned.rate)} {used['busy']:.2f} of {cores} cores were busy: {roles}"
