"""Texts of a report: the meaning of each status, the limitations, and formatted rates, intervals and durations."""

from bench.analysis.comparison import claim_text
from bench.analysis.intervals import has_bracket
from bench.model.measurement import Result
from bench.units import rate_text, seconds_text
from reports.data.run_data import CellData, JudgedTrial, RunData

MISSING = "no result yet"
WITHOUT_RATE = ("failed", "unsupported", "not-measured")
"""Statuses of a result without any rate."""
GLOSSARY = {
    "maximum sustainable throughput": "The highest rate of messages that a system sustains (Karimov et al., 2018): "
    "the backlog does not grow, and no message is lost. Also called the maximum rate or the maximum frequency.",
    "measured": "Both ends of the interval are known, however wide it is; the estimate is the best estimate between "
    "them. The details of a cell say if its interval is wider than the scenario asks.",
    "interval": "95 %: in 95 of 100 such cells it contains the maximum sustainable throughput. ±11 % means that the "
    "farther end is 11 % from the estimate; −31/+77 % that the ends are at different distances. A bracket is less: the "
    "rates between which the maximum seemed to lie, without a probability; it is not used to compare systems.",
    "lower-bound": "At least this rate (≥): only the lower end is known. Higher rates could not be tested because the "
    "load generator was the limit, the time for this cell was over, or the scenario allows no higher rate.",
    "upper-bound": "At most this rate (≤): no rate that was tried was sustained.",
    "unstable": "Trials contradict each other by far more than their noise: the maximum is not one number.",
    "failed": "No result: the framework died, or no trial was valid. This is not a rate of zero.",
    "unsupported": "The system does not support this cell; the reason is given.",
    "not-measured": "No result, and nothing is said about the system: other work on the machine, or stalls of the load "
    "generator, spoiled the trials, also at the end of the run.",
    MISSING: "The run has not finished this cell.",
    "if batches may grow": "A micro-batch system sustains a rate if its batches keep the interval that they were asked "
    "to keep. This second rate is what it could process if they might take as long as they need; it is shown in the "
    "details of a cell. It is the result where the scenario says objectives: {batches: grow}.",
    "sustained": "A trial’s verdict: over the window the backlog did not grow and returned to its minimum, all "
    "messages were processed after the load stopped, and none was lost, duplicated, reordered or corrupted.",
    "overloaded": "A trial’s verdict: the system did not keep up with the offered rate, or died under it.",
    "invalid": "A trial’s verdict: the harness was at fault (for example, the load generator was late), or other "
    "work on the machine could explain the overload. The trial says nothing about the system and is not used.",
    "leads by 1.4 to 1.9 times": "The system is the fastest at this point, and its rate divided by that of the next "
    "one lies between these ends. A map whose systems are all equal shows any leader in at most one of 20 runs.",
    "tie": "The two best systems are certainly within 15 % of each other.",
    "open": "The run cannot tell which of the named systems is the fastest; the reason is given.",
    "bound": "The highest rate that theory allows; for CPU: cores ÷ CPU cost per message. A rate above a hard bound "
    "is an error.",
    "late": "The delay of the load generator behind its own due times at the end of the window.",
    "blocked": "The time during which the source did not accept more messages: back-pressure, which counts against "
    "the system.",
    "drained": "“yes” if everything that was sent was processed soon after the load stopped.",
}
LIMITATIONS = {
    "The load generator may share the machine with the system.": "Then they compete for the CPU, and the map of "
    "bottlenecks says “shared CPU”.",
    "A trial may be too short to show rare events.": "Examples are compactions, long garbage collections and a full "
    "disk. The measured window of a trial is shaded in its timeline.",
    "Noise differs between machines.": "Intervals describe what this run can distinguish, not what another machine "
    "would show.",
    "Intervals may be too narrow.": "bench certify shows how often they contain the truth on simulated systems of "
    "known capacity. Real systems may be noisier; several runs of one scenario, compared with each other, show whether "
    "they are.",
    "A limit of the load generator is not a limit of the system.": "Such cells are lower bounds (≥), never rates; the "
    "truth may be far above a lower bound.",
    "Bottlenecks are found from measurements.": "CPU and garbage collection are measured by role; network and disk "
    "only if the site file gives their bandwidth. For a cell with a trace, the critical path of an overloaded trial "
    "names the bottleneck, too. If nothing was at its limit, it is “not known”.",
}
"""How a result can be wrong: a heading and its explanation."""
MAX_LABEL_LENGTH = 24
LENT_MEMORY = (
    "The host of this virtual machine lends memory while it is used, and not always equally fast. Cells of 100 MB/s "
    "and more have differed by up to 1.8 times between runs. Their intervals describe this run only."
)
LENT_BYTES_PER_S = 10**8
"""From so many bytes/s of messages on, new memory is a large part of their cost."""


def status_of(cell_data: CellData) -> str:
    """Return the status of a cell; MISSING without a result."""
    return cell_data.result.status if cell_data.result is not None else MISSING


def list_remarks(run_data: RunData) -> list[str]:
    """Return the remarks on results, each once, with the systems that it is about."""
    systems: dict[str, list[str]] = {}
    for cell_data in run_data.cells:
        if cell_data.result is not None and cell_data.result.remark is not None:
            systems.setdefault(cell_data.result.remark, []).append(cell_data.cell.system)
    if run_data.record.facts.get("memory_is_lent"):
        systems |= {LENT_MEMORY: [cell.cell.system for cell in run_data.cells if _fills_memory(cell.result)]}
    return [f"{', '.join(dict.fromkeys(names))}: {remark}" for remark, names in systems.items() if names]


def _fills_memory(result: Result | None) -> bool:
    return result is not None and (result.estimate_hz or 0.0) * result.message_bytes >= LENT_BYTES_PER_S


def format_claim(result: Result | None) -> str:
    """Return the rate that may be claimed, such as "12.3 k/s" or "≥ 12.3 k/s"; without a rate the status."""
    return MISSING if result is None else claim_text(result)


def format_sign(result: Result | None) -> str:
    """Return the sign in front of a bound's figure; empty for a measured rate."""
    return {"lower-bound": "≥ ", "upper-bound": "≤ "}.get(result.status, "") if result is not None else ""


def format_interval(low: float | None, high: float | None) -> str:
    """Return an interval, in one unit if possible: "11.9–12.7 k/s"; empty if an end is missing."""
    if low is None or high is None:
        return ""
    first, last = rate_text(low), rate_text(high)
    number, _, unit = first.partition(" ")
    return f"{number}–{last}" if last.endswith(f" {unit}") else f"{first} – {last}"


def format_error(result: Result | None) -> str:
    """Return the interval as a distance from the estimate, such as "±11 %" or "−31/+77 %"; empty for a bound."""
    if result is not None and result.status == "unstable":
        return "unstable"
    if result is None or result.status in WITHOUT_RATE or not (result.low_hz and result.high_hz and result.estimate_hz):
        return ""
    if has_bracket(result):
        return "bracket"
    down, up = (100 * abs(end / result.estimate_hz - 1) for end in (result.low_hz, result.high_hz))
    larger = max(down, up)
    if larger > 20 and larger > 1.5 * min(down, up):
        return f"−{down:.0f}/+{up:.0f} %"
    return f"±{larger:.0f} %" if larger >= 9.5 else f"±{larger:.1g} %"


def format_result_interval(result: Result | None) -> str:
    """Return the interval of a result, with the word bracket if it is none of 95 %; empty if an end is missing."""
    interval = format_interval(result.low_hz, result.high_hz) if result is not None else ""
    return f"bracket {interval}" if interval and result is not None and has_bracket(result) else interval


def format_reason(result: Result) -> str:
    """Return why a result is not simply measured, in two to four words for a cell of a map."""
    if result.status == "lower-bound":
        reasons = {"generator": "limit of generator", "budget": "time was over", "highest": "scenario’s maximum"}
        return reasons.get(result.reason or "", shorten(result.reason or ""))
    if result.status == "upper-bound":
        reason = result.reason or ""
        return "lowest rate tried" if reason == "floor" or "lowest rate tried" in reason else "nothing was sustained"
    return shorten(result.reason or "")


def shorten(text: str, length: int = MAX_LABEL_LENGTH) -> str:
    """Return the beginning of a text, cut between words, of at most `length` characters."""
    if len(text) <= length:
        return text
    return text[: length - 1].rsplit(" ", 1)[0].rstrip(" ,:;") + "…"


def format_latency(trial: JudgedTrial | None, latency: float | None) -> str:
    """Return a latency in seconds as text, with the error that the clocks of several hosts cause."""
    clocks = trial.measurement.clocks if trial is not None else None
    if latency is None or clocks is None:
        return format_duration(latency)
    return f"{format_duration(latency)} ± {format_duration(clocks.max_latency_error)}"


def format_duration(seconds: float | None) -> str:
    """Return a duration as text; empty if there is none."""
    return "" if seconds is None else seconds_text(seconds)


def format_count(count: float) -> str:
    """Return a number of messages as text: 950, 12.3 k, 4.5 M."""
    return rate_text(count).removesuffix("/s").strip()
