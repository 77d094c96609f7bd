"""The output of `bench advise`: a table with the notes of each system, or JSON."""

import sys
from collections.abc import Sequence

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.elasticity.advice import Advice, Amount, Question
from bench.storage.records import FORMAT
from bench.units import rate_range_text, rate_text, seconds_text, size_text

COLUMNS = ("system", "workers", "cores", "partitions", "maximum of the run", "rests on")
MODEL = "Model: each worker adds what one of the measured ones took on average; cores hold all that ran on them."


def advice_json(question: Question, advice: Sequence[Advice], policies: Sequence[Struct] = ()) -> str:
    """Return the advice as JSON; rates in messages/s, sizes in bytes, times in seconds.

    `policies` are what they did with a load; none where there was no load to follow.
    """
    raw = msgspec.json.encode({"format": FORMAT, "question": question, "advice": advice, "policies": policies})
    return msgspec.json.format(raw, indent=1).decode()


def print_advice(question: Question, advice: Sequence[Advice], *, width: int | None = None) -> None:
    """Print the table, the notes of each system, and why others have no advice.

    Args:
        question: The load that was asked for.
        advice: In the order of the table.
        width: Columns of the output; None for those of the terminal, or 200 if it is not one.
    """
    console = Console(highlight=False, markup=False, width=width or (None if sys.stdout.isatty() else 200))
    console.print(_question_text(question))
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for each in advice:
        if not each.reason:
            table.add_row(*_columns(each))
    if table.row_count:
        console.print(table)
    for each in advice:
        for note in (*_setting_notes(each), *each.notes):
            console.print(f"{each.system}: {note}")
    for each in advice:
        if each.reason:
            console.print(f"{each.system}: no advice: {each.reason}")
    if table.row_count:
        console.print(MODEL)


def _question_text(question: Question) -> str:
    load = f"{rate_text(question.rate_hz)} of {size_text(question.message_bytes)}"
    cost = f"{seconds_text(question.cpu_seconds)} of CPU time each"
    needed = f"with {question.headroom:.0%} free: a maximum of {rate_text(question.capacity_hz)}"
    return f"{load}, {cost}, {needed}"


def _columns(advice: Advice) -> tuple[str, ...]:
    measured = advice.measured
    assert measured is not None  # it is, where there is advice
    parts = "–" if advice.partitions is None else str(advice.partitions)
    rate = f"{_rate_text(advice)}, {_count(measured.workers, 'worker')}, {_count(measured.cores, 'core')}"
    basis = [f"{name} {', '.join(axes)}" for name, axes in _basis(advice) if axes] or ["the run alone"]
    return (
        advice.system,
        _amount_text(advice.workers),
        _amount_text(advice.cores),
        parts,
        rate,
        "; ".join(basis),
    )


def _setting_notes(advice: Advice) -> list[str]:
    """Return the setting of a scenario with the advised workers; empty where none is known or can be set."""
    workers, measured = advice.workers.enough, advice.measured
    return [f"{measured.setting}: {workers}"] if workers is not None and measured and measured.setting else []


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _basis(advice: Advice) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return ("between:", advice.interpolated), ("extrapolated:", advice.extrapolated)


def _amount_text(amount: Amount) -> str:
    """Return a number with its range; a bound where only one end is known, and a dash where none is."""
    if amount.enough is None and amount.least is None:
        return "–"
    if amount.enough is None:
        return f"≥ {amount.least}"
    if amount.least is None:
        return f"≤ {amount.enough}"
    whole = amount.least == amount.enough
    return str(amount.enough) if whole else f"{amount.enough} ({amount.least}–{amount.enough})"


def _rate_text(advice: Advice) -> str:
    low, high = advice.low_hz, advice.high_hz
    if low is None or high is None:
        return f"≤ {rate_text(high)}" if low is None else f"≥ {rate_text(low)}"
    interval = rate_range_text(low, high)
    return interval if advice.estimate_hz is None else f"{rate_text(advice.estimate_hz)} [{interval}]"
