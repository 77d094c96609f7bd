"""Quantities with units, parsed from and formatted as text: "10 kB", "20 ms", "1.5 k/s", "5 %"."""

import math
import re
from collections.abc import Mapping
from typing import ClassVar

from msgspec import Meta

_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*(\S*)\s*")
_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SECONDS = {"us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_HERTZ = {"/s": 1.0, "Hz": 1.0, "k/s": 1e3, "kHz": 1e3, "M/s": 1e6, "MHz": 1e6, "/min": 1 / 60}
_BITRATE = {"B/s": 1.0, "Mbit/s": 1e6 / 8, "Gbit/s": 1e9 / 8, "MB/s": 1e6, "GB/s": 1e9, "kB/s": 1e3}


class Size(int):
    """A size in bytes, written as "100 B", "10 kB" (1 kB = 1000 B) or "1 MiB"."""

    allowed = 'a size such as "100 B", "10 kB" (1 kB = 1000 B) or "1 MiB"'
    scale: ClassVar[Mapping[str, float]] = _BYTES

    @classmethod
    def read(cls, text: object) -> "Size":
        """Parse a text into bytes; raise ValueError with the allowed forms if it is wrong."""
        size = _quantity(text, cls.scale, cls.allowed)
        if size != int(size):
            raise ValueError(cls.allowed)
        return cls(size)

    @property
    def written(self) -> object:
        """The text that files contain."""
        return f"{int(self)} B"


class Seconds(float):
    """A duration in seconds, written as "20 ms", "1 s" or "10 min"."""

    allowed = 'a duration such as "20 ms", "1 s" or "10 min"'
    scale: ClassVar[Mapping[str, float]] = _SECONDS

    @classmethod
    def read(cls, text: object) -> "Seconds":
        """Parse a text into seconds; raise ValueError with the allowed forms if it is wrong."""
        return cls(_quantity(text, cls.scale, cls.allowed, bare_zero=True))


class Rate(float):
    """A message rate in messages/s, written as "5 /s", "20 Hz" or "1.5 k/s"."""

    allowed = 'a rate such as "5 /s", "20 Hz" or "1.5 k/s"'
    scale: ClassVar[Mapping[str, float]] = _HERTZ

    @classmethod
    def read(cls, text: object) -> "Rate":
        """Parse a text into messages/s; raise ValueError with the allowed forms if it is wrong."""
        rate = _quantity(text, cls.scale, cls.allowed)
        if rate <= 0:
            raise ValueError(cls.allowed)
        return cls(rate)


class Share(float):
    """A part of a whole, 0 to 1, written as "5 %" or 0.05."""

    allowed = 'a share such as "5 %" or 0.05'
    scale: ClassVar[Mapping[str, float]] = {"%": 0.01, "": 1.0}

    @classmethod
    def read(cls, text: object) -> "Share":
        """Parse a text into a number from 0 to 1; raise ValueError with the allowed forms if it is wrong."""
        share = _quantity(text, cls.scale, cls.allowed)
        if share > 1:
            raise ValueError(cls.allowed)
        return cls(share)


class Bandwidth(float):
    """Bytes per second of a link or a disk, written as "1 Gbit/s" or "125 MB/s"."""

    allowed = 'a bandwidth such as "1 Gbit/s" or "125 MB/s"'
    scale: ClassVar[Mapping[str, float]] = _BITRATE

    @classmethod
    def read(cls, text: object) -> "Bandwidth":
        """Parse a text into bytes/s; raise ValueError with the allowed forms if it is wrong."""
        return cls(_quantity(text, cls.scale, cls.allowed))


Quantity = Size | Seconds | Rate | Share | Bandwidth


def _quantity(text: object, scale: Mapping[str, float], allowed: str, *, bare_zero: bool = False) -> float:
    """Return a number with its unit in the base unit of the scale; raise ValueError with `allowed` if it is wrong."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(allowed)  # noqa: TRY004 -- the value is wrong, whatever its type
    match = _NUMBER.fullmatch(str(text))
    if match is None:
        raise ValueError(allowed)
    number, unit = float(match[1]), match[2]
    if unit not in scale and not (bare_zero and number == 0 and unit == ""):
        raise ValueError(allowed)
    value = round(number * scale.get(unit, 1), 12)
    if not math.isfinite(value):
        raise ValueError(allowed)
    return value


def correct_case(kind: type[Quantity], text: object) -> tuple[str, ...]:
    """Return "10 kB" for "10 kb", a quantity whose unit has the wrong case; empty for any other text."""
    match = _NUMBER.fullmatch(str(text))
    if match is None:
        return ()
    wrong = match[2]
    near = [unit for unit in kind.scale if unit and unit != wrong and unit.casefold() == wrong.casefold()]
    return tuple(f"{match[1]} {unit}" for unit in near)


def limits(**bounds: str) -> Meta:
    """Return the annotation of a quantity with limits.

    Args:
        bounds: `least` and `most` (inclusive), `over` (exclusive), each written as a quantity.
    """
    words = {"least": "at least", "over": "more than", "most": "at most"}
    return Meta(title=", ".join(f"{words[name]} {bound}" for name, bound in bounds.items()), extra=dict(bounds))


def size_text(size: float) -> str:
    """Format a size in bytes for display: 100 B, 10 kB, 2.5 MB."""
    return _scale_text(size, (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)))


def seconds_text(seconds: float) -> str:
    """Format a duration in seconds for display: 0 ms, 250 µs, 20 ms, 1.5 s, 12 min, 2.5 h."""
    if seconds == 0:
        return "0 ms"
    return _scale_text(seconds, (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)))


def rate_text(rate: float | None) -> str:
    """Format a rate in messages/s for display: 12.3 k/s, 20 /s; a dash for None."""
    if rate is None:
        return "–"
    return _scale_text(rate, (("M/s", 1e6), ("k/s", 1e3), ("/s", 1.0)))


def rate_range_text(low: float | None, high: float | None) -> str:
    """Format two rates in messages/s for display: 12.3 k/s .. 14 k/s."""
    return f"{rate_text(low)} .. {rate_text(high)}"


def _scale_text(value: float, units: tuple[tuple[str, float], ...]) -> str:
    """Format three significant digits in the largest unit with a number of at least one, else in the smallest unit."""
    rounded = float(f"{value:.3g}")
    unit, factor = next(((unit, factor) for unit, factor in units if rounded >= factor), units[-1])
    number = float(f"{value / factor:.3g}")
    return f"{number:g} {unit}" if number < 1000 else f"{number:.0f} {unit}"


def exact_text(quantity: object) -> object:
    """Format a quantity for a file, unrounded: reading it gives the same value.

    Raises:
        TypeError: It is not a quantity.
    """
    if isinstance(quantity, Size):
        return quantity.written
    if isinstance(quantity, Share):
        return float(quantity)
    units = {Seconds: "s", Rate: "/s", Bandwidth: "B/s"}
    for kind, unit in units.items():
        if isinstance(quantity, kind):
            return f"{float(quantity)!r} {unit}"
    raise TypeError(f"{type(quantity).__name__} is not a quantity")
