"""The words of a report: what each status means, and how a rate, its interval and its reason are said."""

from bench.model.measurement import Result
from bench.units import rate_text
from reports.data.derived import rate_of
from reports.data.run_data import CellData

MISSING = "not measured"
GLOSSARY = {
    "measured": "The top rate lies inside the interval, and the confirmed rate was sustained in a trial of its own.",
    "lower-bound": "At least this rate (≥): it was sustained, or so much was processed while more was offered; what lies above "
    "could not be told, because our load generator was the limit, the time for this cell was spent, or the scenario asks for no "
    "higher rate.",
    "upper-bound": "At most this rate (≤): the lowest rate that was tried was already too much.",
    "unstable": "Trials at the same rate disagree: sometimes it was sustained, sometimes not.",
    "failed": "No answer: the framework died, or no trial was valid. This is not a rate of zero.",
    "unsupported": "This system cannot do this cell; the reason is given.",
    MISSING: "The run has not finished this cell.",
    "sustained": "A trial's verdict: over the window the backlog did not grow, it came back to its floor, it drained after "
    "the load stopped, and nothing was lost, duplicated, reordered or corrupted.",
    "overloaded": "A trial's verdict: the system did not keep up with the offered rate, or died under it.",
    "invalid": "A trial's verdict: the harness itself was at fault (say, its generator was late), so the trial says nothing "
    "about the system and was not used.",
    "tie": "The intervals of the best systems overlap: this run cannot say which of them is faster.",
    "bound": "What theory allows the cell; for CPU: cores ÷ CPU cost per message. A rate above it would be an alarm.",
    "late": "How far the load generator was behind its own due times at the end of the window.",
    "blocked": "For how long the source did not take more messages: back-pressure, which counts against the system.",
    "drained": "Whether everything that was sent was processed soon after the load stopped.",
}
DOUBTS = {
    "The load shares the machine with the system.": "Where it does, they take CPU from each other; the map of limits then says "
    "“shared CPU”.",
    "A trial is too short": "to see what happens rarely: a compaction, a long garbage collection, a full disk. The window is given "
    "above.",
    "The noise of this machine": "is not that of yours. Intervals tell what this run can tell apart, not what another machine "
    "would do.",
    "An interval is a claim.": "On simulated systems whose ceiling is known it holds the truth in at least nine of ten runs "
    "(bench certify); real systems may be noisier: several runs of one scenario side by side say whether they are.",
    "A generator’s limit is not the system’s.": "Such cells are bounds (≥), never rates; a bound may lie far below the truth.",
    "What limits a cell": "is told from what probes saw: CPU and garbage collection by role; network and disk only where the site "
    "file says what they can do. Where none was at its limit it says “not known”.",
}
"""How a result can be wrong: what, and what is known of it."""


def status_of(known: CellData) -> str:
    """A cell's status, also of one without a result."""
    return known.result.status if known.result is not None else MISSING


def claim_of(result: Result | None) -> str:
    """A cell's rate as it may be claimed: 12.3 k/s, ≥ 12.3 k/s, ≤ 12.3 k/s, or the word for having none."""
    if result is None:
        return MISSING
    if result.status in ("failed", "unsupported"):
        return result.status
    if result.status == "upper-bound":
        return f"≤ {rate_text(result.high_hz)}"
    return f"{sign_of(result)}{rate_text(rate_of(result))}"


def sign_of(result: Result | None) -> str:
    """What stands before a bound's figure."""
    return {"lower-bound": "≥ ", "upper-bound": "≤ "}.get(result.status, "") if result is not None else ""


def interval_text(low: float | None, high: float | None) -> str:
    """An interval in one unit where it has one: 11.9–12.7 k/s; empty when an end is missing."""
    if low is None or high is None:
        return ""
    first, last = rate_text(low), rate_text(high)
    number, _, unit = first.partition(" ")
    return f"{number}–{last}" if last.endswith(f" {unit}") else f"{first} – {last}"


def reason_of(result: Result) -> str:
    """Why a result is not simply measured, in two or three words for a cell of a map."""
    if result.status == "lower-bound":
        known = {"generator": "generator's limit", "budget": "time was spent", "highest": "highest rate asked for"}
        return known.get(result.reason or "", shortened(result.reason or ""))
    if result.status == "upper-bound":
        return "lowest rate tried"
    return shortened(result.reason or "")


def shortened(text: str, most: int = 24) -> str:
    """A text's beginning, cut at a word."""
    if len(text) <= most:
        return text
    return text[: most - 1].rsplit(" ", 1)[0].rstrip(" ,:;") + "…"
