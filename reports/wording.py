"""The words of a report: what each status means, and how a rate, its interval and its reason are said."""

from bench.measurement import Result
from bench.units import rate_text
from reports.evidence import Known

MISSING = "not measured"
GLOSSARY = {
    "measured": "The top rate lies inside the interval, and the confirmed rate was sustained in a trial of its own.",
    "lower-bound": "At least this rate (≥): it was sustained, but what lies above could not be tried, because our load "
    "generator was the limit, or the time for this cell was spent.",
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


def status_of(known: Known) -> str:
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
    if result.status == "lower-bound":
        return f"≥ {rate_text(result.low_hz if result.low_hz is not None else best_rate(result))}"
    return rate_text(best_rate(result))


def best_rate(result: Result) -> float | None:
    """The rate that a result stands for: its estimate, else what was sustained; None when it has neither."""
    return result.estimate_hz if result.estimate_hz is not None else result.low_hz


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
        known = {"generator": "generator's limit", "budget": "time was spent"}
        return known.get(result.reason or "", shortened(result.reason or ""))
    if result.status == "upper-bound":
        return "lowest rate tried"
    return shortened(result.reason or "")


def shortened(text: str, most: int = 24) -> str:
    """A text's beginning, cut at a word."""
    if len(text) <= most:
        return text
    return text[: most - 1].rsplit(" ", 1)[0].rstrip(" ,:;") + "…"
