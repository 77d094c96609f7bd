"""Texts of a report: the meaning of each status, the limitations, and formatted rates, intervals and durations."""

from bench.model.measurement import Result
from bench.units import rate_text, seconds_text
from reports.data.derived import rate_of
from reports.data.run_data import CellData, JudgedTrial

MISSING = "not measured"
GLOSSARY = {
    "maximum sustainable throughput": "The highest rate of messages that a system sustains (Karimov et al., 2018): "
    "messages do not pile up in front of it, and none is lost. Also called the top rate or the maximum frequency.",
    "measured": "The maximum sustainable throughput lies inside the interval; the confirmed rate was sustained in a "
    "separate trial.",
    "lower-bound": "At least this rate (≥): it was sustained, or that many messages were processed while more were "
    "offered. Higher rates could not be tested because the load generator was the limit, the time for this cell was "
    "over, or the scenario allows no higher rate.",
    "upper-bound": "At most this rate (≤): the system was overloaded at the lowest rate that was tried.",
    "unstable": "Trials at the same rate disagree: some were sustained, some were not.",
    "failed": "No result: the framework died, or no trial was valid. This is not a rate of zero.",
    "unsupported": "The system does not support this cell; the reason is given.",
    MISSING: "The run has not finished this cell.",
    "sustained": "A trial’s verdict: over the window the backlog did not grow and returned to its minimum, all "
    "messages were processed after the load stopped, and none was lost, duplicated, reordered or corrupted.",
    "overloaded": "A trial’s verdict: the system did not keep up with the offered rate, or died under it.",
    "invalid": "A trial’s verdict: the harness was at fault (for example, the load generator was late). The trial "
    "says nothing about the system and is not used.",
    "tie": "The intervals of the best systems overlap: this run cannot tell which one is faster.",
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
    "A trial may be too short": "for rare events: a compaction, a long garbage collection, a full disk. The length of "
    "the window is given above.",
    "Noise differs between machines.": "Intervals describe what this run can distinguish, not what another machine "
    "would show.",
    "An interval is a claim.": "On simulated systems with a known capacity it contains the truth in at least nine of "
    "ten runs (bench certify). Real systems may be noisier; several runs of one scenario, compared with each other, "
    "show whether they are.",
    "A limit of the load generator is not a limit of the system.": "Such cells are lower bounds (≥), never rates; the "
    "truth may be far above a lower bound.",
    "A bottleneck": "is found from measurements: CPU and garbage collection by role; network and disk only if the "
    "site file gives their bandwidth. If none was at its limit, the bottleneck is “not known”.",
}
"""How a result can be wrong: a heading and its explanation."""
MAX_LABEL_LENGTH = 24


def status_of(cell_data: CellData) -> str:
    """Return the status of a cell; MISSING without a result."""
    return cell_data.result.status if cell_data.result is not None else MISSING


def format_claim(result: Result | None) -> str:
    """Return the rate that may be claimed, such as "12.3 k/s" or "≥ 12.3 k/s"; without a rate the status."""
    if result is None:
        return MISSING
    if result.status in ("failed", "unsupported"):
        return result.status
    if result.status == "upper-bound":
        return f"≤ {rate_text(result.high_hz)}"
    return f"{format_sign(result)}{rate_text(rate_of(result))}"


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


def format_reason(result: Result) -> str:
    """Return why a result is not simply measured, in two to four words for a cell of a map."""
    if result.status == "lower-bound":
        reasons = {"generator": "limit of generator", "budget": "time was over", "highest": "scenario’s maximum"}
        return reasons.get(result.reason or "", shorten(result.reason or ""))
    if result.status == "upper-bound":
        return "lowest rate tried"
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
