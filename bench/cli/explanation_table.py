"""The output of `bench explain`: the sentence and the tables of a trial as text, or everything as JSON."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from bench.analysis.advice import NAMES
from bench.runner.explanation import ExplainedTrial
from bench.units import rate_text, seconds_text

MIN_SHOWN = 0.005
"""Share of the critical path, and of the busy time, from which on a row is shown."""
WIDTH = 54
"""Of the first column."""
MAX_ROWS = 12
"""Of a table of operators, workers or channels."""


def table_lines(explained: ExplainedTrial) -> Iterator[str]:
    """Yield the lines about one trial."""
    explanation = explained.explanation
    yield f"{describe_trial(explained)}: {explanation.sentence}."
    if explanation.connected < explanation.windows:
        yield f"{explanation.connected} of {explanation.windows} windows have a critical path; the others do not count."
    yield f"{'activity':{WIDTH}}{'critical path':>14}{'busy time':>11}"
    for row in explanation.activities:
        if max(row.critical, row.profile or 0.0) >= MIN_SHOWN:
            label = f"{row.activity:15} {NAMES.get(row.activity, '')}"
            profile = "" if row.profile is None else f"{row.profile:.1%}"
            yield f"{label:{WIDTH}}{row.critical:14.1%}{profile:>11}"
    yield from _shares("operator, by worker", explanation.operators)
    yield from _shares("worker", explanation.workers)
    channels = {f"{one.sender} > {one.receiver}": one.critical for one in explanation.channels}
    yield from _shares("messages", channels)
    if explained.samples:
        yield f"{'sampled, not a part of any path':{WIDTH}}{'mean':>14}"
    for one in explained.samples:
        yield f"{f'{one.entity}: {one.metric}':{WIDTH}}{one.mean:14.3g}"


def describe_trial(explained: ExplainedTrial) -> str:
    """Return the cell, the rate, the number and the verdict of a trial as text."""
    trial = explained.trial
    planned, cell = trial.measurement.planned, trial.cell
    point = f"{cell.size_text}, {seconds_text(cell.cpu_seconds)}"
    return f"{cell.system} at {point}, {rate_text(planned.rate)} (trial {planned.number}, {trial.verdict.word})"


def encode_explained(explained: Sequence[ExplainedTrial]) -> str:
    """Return explanations as JSON: an object for each cell."""
    rows = [
        {
            "cell": one.trial.cell.name,
            "system": one.trial.cell.system,
            "trial": one.trial.measurement.planned.number,
            "rate_hz": one.trial.measurement.planned.rate,
            "verdict": one.trial.verdict.word,
            **msgspec.to_builtins(one.explanation),
            "samples": msgspec.to_builtins(one.samples),
        }
        for one in explained
    ]
    return msgspec.json.format(msgspec.json.encode(rows), indent=1).decode()


def _shares(title: str, shares: Mapping[str, float]) -> Iterator[str]:
    shown = [(name, share) for name, share in shares.items() if share >= MIN_SHOWN][:MAX_ROWS]
    if shown:
        yield f"{title:{WIDTH}}{'critical path':>14}"
    for name, share in shown:
        yield f"{name:{WIDTH}.{WIDTH}}{share:14.1%}"
