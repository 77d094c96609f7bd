"""The bottleneck of a cell, found from the measurements of its trials: a kind, a sentence, and the figures behind it.

The overloaded trial just above the sustained rate shows why more was not possible; the deciding trial shows what was in
use. If no measured resource was at its limit, the bottleneck is "not known", with the figures that rule the others out.
"""

from typing import Literal

from msgspec import Struct

from bench.analysis.bounds import MIN_BUSY_SHARE, NEAR, reached_bound
from bench.model.measurement import Measurement
from bench.units import rate_text, seconds_text, size_text
from reports.data.derived import count_cores, count_usable_cores, find_bound, get_cpu_seconds, rate_of
from reports.data.labels import WITHOUT_RATE
from reports.data.run_data import CellData, JudgedTrial, RunData

Kind = Literal[
    "CPU cost", "framework CPU", "broker CPU", "shared CPU", "one thread", "batches", "source", "network", "disk",
    "commits", "straggler", "garbage collection", "generator", "latency", "died", "time allowed", "not known",
]  # fmt: skip
MIN_GC_SHARE = 0.25
"""Share of the time that a JVM must spend on garbage collection for that to be the bottleneck."""
MIN_GENERATOR_SHARE = 0.2
"""Share of the busy cores from which on the load generator, which competes for them, is named as part of the
bottleneck."""
MIN_BLOCKED_SHARE = 0.2
"""Share of the window for which the source must push back to be the bottleneck."""
MIN_BATCH_STRETCH = 1.15
"""Factor by which batches must take longer than their interval to be the bottleneck."""

JVMS = {"framework": "framework’s JVM", "source": "broker’s JVM"}
ROLES = {"framework": "framework", "source": "broker", "load": "generator"}


class Symptom(Struct, frozen=True):
    """Activities whose share of the critical path stands for a kind of bottleneck."""

    kind: Kind
    activities: tuple[str, ...]
    text: str


SYMPTOMS = (
    Symptom("framework CPU", ("processing", "deserialize", "serialize", "reporting"), "work on messages"),
    Symptom("batches", ("planning", "scheduling", "control"), "planning of batches and scheduling of tasks"),
    Symptom("commits", ("wal-commit", "offset-commit"), "commits of batches"),
    Symptom(
        "source", ("source-read", "data", "idle(source)", "idle(trigger)"), "reading from the source and waiting for it"
    ),
    Symptom("garbage collection", ("gc",), "garbage collection"),
)
MIN_TRACED_SHARE = 0.3
"""Share of the critical path that the activities of a symptom must have to be the bottleneck."""


class Bottleneck(Struct, frozen=True):
    """The resource that limits a cell; `sentence` describes it, `evidence` has the figures."""

    kind: Kind
    sentence: str
    evidence: str = ""


def find_bottleneck(run_data: RunData, cell_data: CellData) -> Bottleneck | None:
    """Return what limits a cell; None if it has no rate or no trial."""
    result = cell_data.result
    if result is None or result.status in WITHOUT_RATE or not cell_data.trials:
        return None
    if result.reason == "generator":
        return _describe_generator(cell_data)
    framework, above = cell_data.cell.framework, _find_trial_above(cell_data)
    cores, usable = count_cores(run_data, framework), count_usable_cores(run_data, framework)
    bottleneck = _check_bounds(run_data, cell_data)
    if bottleneck is None and above is not None:
        by_cpu = _check_cpu(above.measurement, cores, usable) if cores and usable else None
        bottleneck = (
            _check_verdict(above)
            or _check_trace(run_data, cell_data, by_cpu)
            or _check_probes(run_data, above.measurement)
            or by_cpu
        )
    if bottleneck is not None:
        return bottleneck
    usage = _describe_usage(above or cell_data.deciding, cores)
    if result.status == "lower-bound" and result.reason == "budget":
        return Bottleneck(
            "time allowed", "The time allowed for this cell was over before its limit was reached.", usage
        )
    if result.reason == "highest":
        return Bottleneck("not known", "The system sustained the highest rate that the scenario allows.", usage)
    return Bottleneck("not known", "No measured resource was at its limit.", usage)


def _find_trial_above(cell_data: CellData) -> JudgedTrial | None:
    """Return the overloaded trial nearest above the sustained rate; one below it, of a cold system, shows no limit."""
    deciding = cell_data.deciding
    sustained = deciding is not None and deciding.verdict.word == "sustained"
    top = deciding.measurement.planned.rate if deciding is not None and sustained else 0.0
    overloaded = [
        trial
        for trial in cell_data.trials
        if trial.verdict.word == "overloaded"
        and trial.measurement.planned.purpose != "warm-up"
        and trial.measurement.planned.rate > top
    ]
    return min(overloaded, key=lambda trial: trial.measurement.planned.rate, default=None)


def _describe_generator(cell_data: CellData) -> Bottleneck:
    late = [
        trial.measurement
        for trial in cell_data.trials
        if trial.verdict.word == "invalid" and trial.verdict.why == "generator"
    ]
    if not late:
        reached = cell_data.result.generator_hz if cell_data.result is not None else None
        evidence = f"it reached {rate_text(reached)}" if reached else ""
        return Bottleneck("generator", "Our load generator could not send more.", evidence)
    measurement = min(late, key=lambda trial: trial.planned.rate)
    at = rate_text(measurement.planned.rate)
    behind, blocked = seconds_text(measurement.late), seconds_text(measurement.blocked)
    figures = f"at {at} it was {behind} late; the source pushed back for {blocked}"
    return Bottleneck(
        "generator", "Our load generator could not send more; the system may be able to take it.", figures
    )


def _check_bounds(run_data: RunData, cell_data: CellData) -> Bottleneck | None:
    """Return a bottleneck if the rate is near a bound, soft bounds first."""
    rate, result, bound = rate_of(cell_data.result), cell_data.result, find_bound(run_data, cell_data)
    if rate is None or result is None:
        return None
    soft = reached_bound(rate, result.soft_bounds)
    if soft is not None:
        kind: Kind = "disk" if soft.name == "disk" else "network"
        figures = f"{rate_text(rate)} is {rate / soft.hz:.0%} of {rate_text(soft.hz)}"
        return Bottleneck(kind, f"The source’s {kind} is full: the source copies each message.", figures)
    if bound is None or reached_bound(rate, (bound,)) is None:
        return None
    figures = f"{rate_text(rate)} is {rate / bound.hz:.0%} of {rate_text(bound.hz)}"
    if bound.name == "network":
        volume = f"{size_text(rate * cell_data.cell.message_bytes)}/s"
        return Bottleneck("network", "The link to the source is full.", f"{figures}, {volume}")
    return Bottleneck("CPU cost", "The messages’ own CPU cost uses nearly all cores.", f"{figures}, cores ÷ cost")


def _check_verdict(above: JudgedTrial) -> Bottleneck | None:
    """Return a bottleneck if the verdict of an overloaded trial names it."""
    measurement, why = above.measurement, above.verdict.why
    at = f"at {rate_text(measurement.planned.rate)}"
    if measurement.ended in ("framework died", "source died"):
        role = measurement.ended.removesuffix(" died")
        return Bottleneck("died", f"The {role} dies above this rate.", f"{at}: {measurement.note or measurement.ended}")
    if why.startswith("p99"):
        sentence = "Above this rate the latency objective is missed; the system could process more."
        return Bottleneck("latency", sentence, f"{at}: {why}")
    return None


def _check_trace(run_data: RunData, cell_data: CellData, by_cpu: Bottleneck | None) -> Bottleneck | None:
    """Return a bottleneck if the critical path of an overloaded trial shows one.

    Work takes longer where others use the cores: then the CPU use (`by_cpu`) says whose work it is.
    """
    explained = run_data.explained.get(cell_data.cell)
    if explained is None or explained.trial.verdict.word != "overloaded":
        return None
    explanation, rate = explained.explanation, rate_text(explained.trial.measurement.planned.rate)
    evidence = f"at {rate} {explanation.sentence}"
    if explanation.straggler is not None:
        return Bottleneck("straggler", "One worker has more to do than the others, which wait for it.", evidence)
    shares = [(sum(explanation.shares.get(name, 0.0) for name in one.activities), one) for one in SYMPTOMS]
    share, symptom = max(shares, key=lambda pair: pair[0])
    if share < MIN_TRACED_SHARE:
        return None
    if symptom.kind == "framework CPU" and by_cpu is not None and by_cpu.kind in ("shared CPU", "broker CPU"):
        return Bottleneck(by_cpu.kind, by_cpu.sentence, f"{by_cpu.evidence}; {evidence}")
    return Bottleneck(symptom.kind, f"Of the critical path, {share:.0%} is {symptom.text}.", evidence)


def _check_probes(run_data: RunData, measurement: Measurement) -> Bottleneck | None:
    """Return a bottleneck if garbage collection, network or disk were at their limit in an overloaded trial."""
    span, site = get_cpu_seconds(measurement), run_data.record.site
    at = f"at {rate_text(measurement.planned.rate)}"
    for role, name in JVMS.items():
        share = measurement.usage.get(role, {}).get("gc_seconds", 0.0) / span
        if share >= MIN_GC_SHARE:
            return Bottleneck(
                "garbage collection", f"The {name} pauses for garbage collection.", f"{at} for {share:.0%} of the time"
            )
    link = max(_max_bytes(measurement, ("link_sent_bytes",)), _max_bytes(measurement, ("link_received_bytes",))) / span
    if site.bandwidth is not None and link >= NEAR * site.bandwidth:
        figures = f"{at} {size_text(link)}/s of {size_text(site.bandwidth)}/s"
        return Bottleneck("network", "The network is full.", figures)
    stored = _max_bytes(measurement, ("read_bytes", "written_bytes")) / span
    if site.disk is not None and stored >= NEAR * site.disk:
        figures = f"{at} {size_text(stored)}/s of {size_text(site.disk)}/s"
        return Bottleneck("disk", "The disk is fully used.", figures)
    return None


def _max_bytes(measurement: Measurement, names: tuple[str, ...]) -> float:
    """Return the sum of these counters of the role that has most of them."""
    return max((sum(used.get(name, 0.0) for name in names) for used in measurement.usage.values()), default=0.0)


def _check_cpu(measurement: Measurement, cores: int, usable: int) -> Bottleneck | None:
    """Return a bottleneck if the CPU use of an overloaded trial shows one.

    Args:
        measurement: the overloaded trial.
        cores: cores of the host that the framework runs on.
        usable: how many of them the framework can use by its settings.
    """
    if "framework" not in measurement.cpu or "source" not in measurement.cpu:
        return None  # on another host, or not ours: their CPU time is not known
    used = _compute_used_cores_by_role(measurement)
    of_all = round(measurement.cpu.get("available", 0.0) / get_cpu_seconds(measurement)) or cores
    figures = _format_usage(measurement, used, of_all)
    if used["busy"] >= MIN_BUSY_SHARE * of_all or used["framework"] + used["source"] >= MIN_BUSY_SHARE * cores:
        return _name_busiest(used, figures)
    if used["framework"] >= MIN_BUSY_SHARE * usable > MIN_BUSY_SHARE:
        return Bottleneck("framework CPU", f"The framework uses all of the {usable} cores it was given.", figures)
    if 0.9 <= used["framework"] <= 1.1 and of_all > 1:
        sentence = "The framework uses one core and no more, as a stage with a single thread does."
        return Bottleneck("one thread", sentence, figures)
    if _batches_take_longer(measurement):
        sentence = (
            "Batches take longer than their interval although cores are free: scheduling and committing take the time."
        )
        return Bottleneck("batches", sentence, figures)
    if measurement.blocked > MIN_BLOCKED_SHARE * measurement.planned.window:
        evidence = f"{figures}; it pushed back for {seconds_text(measurement.blocked)}"
        return Bottleneck("source", "The source pushed back, although cores are free.", evidence)
    return None


def _name_busiest(used: dict[str, float], figures: str) -> Bottleneck:
    """Return the bottleneck of a machine without free cores: the role that uses most of them."""
    busy = max(used["busy"], used["framework"] + used["source"] + used["load"])
    if used["load"] > MIN_GENERATOR_SHARE * busy and used["source"] <= max(used["framework"], used["load"]):
        part = "mostly" if used["load"] > busy / 2 else f"{used['load'] / busy:.0%} of them"
        sentence = f"All cores are busy, {part} with our load generator, which shares this machine with the system."
        return Bottleneck("shared CPU", sentence, figures)
    if used["source"] > used["framework"]:
        return Bottleneck("broker CPU", "All cores are busy, mostly with the source’s servers.", figures)
    return Bottleneck("framework CPU", "All cores are busy, mostly with the framework.", figures)


def _batches_take_longer(measurement: Measurement) -> bool:
    """Return True if a micro-batch framework reports its progress clearly less often than once an interval."""
    if measurement.batch_interval <= 0:
        return False
    series, begin = measurement.series, measurement.planned.settle
    steps = zip(series.at[1:], series.processed, series.processed[1:], strict=False)
    progressed = [at for at, before, after in steps if after > before]
    within = [at for at in progressed if begin <= at <= begin + measurement.planned.window]
    if len(within) < 2:
        return False
    return (within[-1] - within[0]) / (len(within) - 1) > MIN_BATCH_STRETCH * measurement.batch_interval


def _compute_used_cores_by_role(measurement: Measurement) -> dict[str, float]:
    span = get_cpu_seconds(measurement)
    return {role: measurement.cpu.get(role, 0.0) / span for role in (*ROLES, "busy")}


def _describe_usage(trial: JudgedTrial | None, cores: int | None) -> str:
    """Return the cores in use in a trial as text; empty if they were not measured."""
    if (
        trial is None
        or cores is None
        or not trial.measurement.cpu.get("busy")
        or "framework" not in trial.measurement.cpu
    ):
        return ""
    return _format_usage(trial.measurement, _compute_used_cores_by_role(trial.measurement), cores)


def _format_usage(measurement: Measurement, used: dict[str, float], cores: int) -> str:
    roles = ", ".join(f"{name} {used[role]:.2f}" for role, name in ROLES.items())
    return f"at {rate_text(measurement.planned.rate)} {used['busy']:.2f} of {cores} cores were busy: {roles}"
