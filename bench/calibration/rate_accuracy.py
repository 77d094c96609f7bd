"""Accuracy of the load generator's rate: from one message in ten seconds to nine tenths of its maximum rate."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from bench.calibration.generator_ceiling import load_spec_of, measure_load, open_load, send_load
from bench.config.scenario import Scenario
from bench.errors import PluginError
from bench.model.cell import Cell
from bench.plugins.environment import RunEnvironment
from bench.storage.atomic_file import replace_file
from bench.workload.load_spec import SendProgress

FORMAT = 1
FILE = "offered.json"
MIN_HZ = 0.1
"""The lowest rate, in messages/s."""
MAX_SHARE = 0.9
"""The highest rate, as a share of the load generator's maximum rate."""
MIN_INTERVALS, MIN_LOAD_S = 5, 8.0
"""Intervals between messages, and seconds, for which a load lasts at least. The load generator reports its progress
every 50 ms: the rate of a shorter load would be less accurate."""


class RateAccuracy(Struct, frozen=True):
    """A rate that was requested of the load generator, and the one that it sent, in messages/s.

    `late` is its largest delay behind its due times, in seconds.
    """

    source: str
    message_bytes: int
    requested_hz: float = field(name="asked_hz")
    sent_hz: float
    late: float

    @property
    def error(self) -> float:
        """Return the error of the rate, as a share of the requested one."""
        return self.sent_hz / self.requested_hz - 1


def measure_accuracy(cell: Cell, scenario: Scenario, env: RunEnvironment, seconds: float) -> Iterator[RateAccuracy]:
    """Yield the accuracy at MIN_HZ, at every tenfold of it, and at MAX_SHARE of the load generator's maximum rate.

    Args:
        cell: The cell whose source and message size are used.
        scenario: Its load generator and settings.
        env: The environment in which both are opened.
        seconds: Duration of the load that shows the maximum rate.

    Raises:
        PluginError: The source confirmed nothing.
    """
    top = MAX_SHARE * measure_load(cell, scenario, env, seconds)
    if top <= 0:
        raise PluginError(cell.source, "calibrate", f"nothing was confirmed within {seconds:g} s; give more --seconds")
    with open_load(cell, scenario, env) as load:
        for number, rate in enumerate(decades(top), 1):
            env.note(f"{cell.source} {cell.message_bytes} B at {rate:g} messages/s")
            spec = load_spec_of(cell, scenario, rate, max(MIN_LOAD_S, (MIN_INTERVALS + 1) / rate), run=number)
            readings = [sent for sent in send_load(load, spec) if sent.at <= spec.begin + spec.seconds]
            yield RateAccuracy(
                cell.source,
                cell.message_bytes,
                rate,
                rate_in(readings),
                max((sent.max_late for sent in readings), default=0.0),
            )


def write_accuracy(folder: Path, found: Sequence[RateAccuracy]) -> None:
    """Replace a folder's offered.json in one step."""
    content = msgspec.json.encode({"format": FORMAT, "offered": list(found)})
    replace_file(folder / FILE, msgspec.json.format(content, indent=1))


def decades(top: float) -> list[float]:
    """Return MIN_HZ and every tenfold of it below the top rate, then the top rate."""
    found, rate = [], MIN_HZ
    while rate < top:
        found.append(rate)
        rate = float(f"{rate * 10:g}")
    return [*found, top]


def rate_in(readings: Iterable[SendProgress]) -> float:
    """Return messages/s between the first report and the last one in which the count had grown.

    0 with fewer than two.
    """
    grown: list[SendProgress] = []
    for sent in readings:
        if sent.accepted > (grown[-1].accepted if grown else 0):
            grown.append(sent)
    if len(grown) < 2:
        return 0.0
    return (grown[-1].accepted - grown[0].accepted) / (grown[-1].at - grown[0].at)
