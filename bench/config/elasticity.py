"""The part of a scenario of kind elasticity: a load over time, and the scaling policies that follow it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from bench.units import Rate, Seconds, Share, limits

MAX_BURSTS = 1000
"""In a part of a load over time."""


class LoadPart(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a load over time."""

    time: Annotated[Seconds, limits(over="0 s")]
    rate: Rate
    """At its beginning; of a trace, its highest rate"""
    to: Rate | None = None
    """Rate at the end of a ramp, at the noon of a day, within bursts"""
    shape: Literal["step", "ramp", "day", "bursts", "trace"] = "step"
    period: Annotated[Seconds, limits(over="0 s")] | None = None
    """Of bursts, which take a fifth of it; a tenth of the time when left out"""
    trace: str | None = None
    """Path of a CSV file of times and rates, which is scaled to time and rate"""


class Elasticity(Struct, frozen=True, forbid_unknown_fields=True):
    """A load over time, and the policies that follow it one after the other, on the same messages."""

    load: Annotated[tuple[LoadPart, ...], Meta(min_length=1, max_length=1000)]
    """Parts one after the other, each {time: 60 s, rate: 40 /s}, and {to: 80 /s, shape: ramp} for other than a step"""
    policies: Annotated[
        tuple[str, ...],
        Meta(min_length=1, max_length=100, extra={"unique": True}, extra_json_schema={"uniqueItems": True}),
    ]
    interval: Annotated[Seconds, limits(least="1 s")] = Seconds(5)
    """Time between two decisions"""
    start: Annotated[int, Meta(ge=1, le=1000)] = 1
    """Workers at the beginning"""
    most: Annotated[int, Meta(ge=1, le=1000)] = 16
    """Workers at most, whatever a policy asks for"""
    duty: Annotated[Share, limits(most="100 %")] = Share(1)
    """Share of each message's cost that is burnt as CPU time; the rest is slept. Workers are throttled below 100 %"""

    @property
    def seconds(self) -> float:
        """Return the duration of the load."""
        return sum(float(part.time) for part in self.load)
