"""Quantities with units are parsed into numbers and formatted again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.units import (
    Bandwidth,
    Quantity,
    Rate,
    Seconds,
    Share,
    Size,
    correct_case,
    exact_text,
    limits,
    rate_text,
    seconds_text,
    size_text,
)

KINDS = [Size, Seconds, Rate, Share, Bandwidth]
NEVER: tuple[object, ...] = (None, True, [1], {}, "nan", "inf", float("inf"), float("nan"))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Size, "100 B", 100),
        (Size, "1kB", 1000),
        (Size, " 1.5 kB ", 1500),
        (Size, "1 KiB", 1024),
        (Size, "2 MiB", 2 * 2**20),
        (Size, "1e3 kB", 10**6),
        (Size, "1.001 kB", 1001),
        (Seconds, "20 ms", 0.02),
        (Seconds, "20ms", 0.02),
        (Seconds, "250 µs", 0.00025),
        (Seconds, "250 μs", 0.00025),
        (Seconds, "250 us", 0.00025),
        (Seconds, "10 min", 600),
        (Seconds, "2.5 h", 9000),
        (Seconds, 0, 0),
        (Seconds, "0", 0),
        (Rate, "5 /s", 5),
        (Rate, "20 Hz", 20),
        (Rate, "1.5 k/s", 1500),
        (Rate, "0.2 MHz", 2e5),
        (Rate, "6 /min", 0.1),
        (Share, "5 %", 0.05),
        (Share, "10%", 0.1),
        (Share, 0.05, 0.05),
        (Share, 1, 1),
        (Bandwidth, "1 Gbit/s", 125e6),
        (Bandwidth, "125 MB/s", 125e6),
    ],
    ids=str,
)
def test_a_quantity_is_parsed_into_its_base_unit(kind: type[Quantity], text: object, value: float) -> None:
    """Bytes, seconds, messages/s, parts of one, bytes/s; the space before the unit may be left out."""
    read = kind.read(text)
    assert read == value
    assert type(read) is kind


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Size, 100),
        (Size, "100"),
        (Size, "10 kb"),
        (Size, "-1 B"),
        (Size, "0.5 B"),
        (Size, "1e999 B"),
        (Size, "1 k B"),
        (Size, "kB"),
        (Size, ""),
        (Size, "٣ kB"),
        (Seconds, 5),
        (Seconds, "5"),
        (Seconds, "1 S"),
        (Seconds, "1 s 500 ms"),
        (Rate, "0 /s"),
        (Rate, "1e-30 /s"),
        (Rate, 20),
        (Share, "101 %"),
        (Share, 1.5),
        (Share, "-5 %"),
        (Bandwidth, "1 GB"),
        *((kind, wrong) for kind in KINDS for wrong in NEVER),
    ],
    ids=str,
)
def test_any_other_value_is_an_error_with_the_allowed_forms(kind: type[Quantity], text: object) -> None:
    """The text of the error is the description of the allowed forms."""
    with pytest.raises(ValueError, match=r"^a ") as caught:
        kind.read(text)
    assert str(caught.value) == kind.allowed


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(alphabet="0123456789.eE+- kKmMGiBbsHz/%µ\n", max_size=12))
def test_any_text_is_parsed_or_refused(kind: type[Quantity], text: str) -> None:
    """Parsing raises only ValueError, and its results are finite and not negative."""
    try:
        assert 0 <= kind.read(text) < float("inf")
    except ValueError as error:
        assert str(error) == kind.allowed  # noqa: PT017  either outcome is right


@given(st.integers(0, 10**12))
def test_an_exact_size_is_read_back(size: int) -> None:
    """A size written to a file and read back is the same."""
    assert Size.read(exact_text(Size(size))) == size


@pytest.mark.parametrize("kind", [Seconds, Rate, Share, Bandwidth])
@given(value=st.floats(1e-6, 1.0, allow_nan=False))
def test_an_exact_quantity_is_read_back(kind: type[Quantity], value: float) -> None:
    """A quantity written to a file and read back is the same to 1e-12."""
    assert kind.read(exact_text(kind(value))) == pytest.approx(value, abs=1e-12, rel=0)


def test_only_quantities_have_an_exact_text() -> None:
    """Any other type is a TypeError."""
    with pytest.raises(TypeError, match="list is not a quantity"):
        exact_text([])


@given(st.floats(1e-6, 1e5))
def test_a_displayed_duration_is_near_the_number(seconds: float) -> None:
    """Three significant digits are kept, in a unit that can be parsed."""
    assert Seconds.read(seconds_text(seconds)) == pytest.approx(seconds, rel=0.005)


@given(st.floats(1e-3, 1e9))
def test_a_displayed_rate_is_near_the_number(rate: float) -> None:
    """Three significant digits are kept, in a unit that can be parsed."""
    assert Rate.read(rate_text(rate)) == pytest.approx(rate, rel=0.005)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (size_text(100), "100 B"),
        (size_text(2_500_000), "2.5 MB"),
        (size_text(999_999), "1 MB"),
        (seconds_text(0), "0 ms"),
        (seconds_text(0.02), "20 ms"),
        (seconds_text(1.5), "1.5 s"),
        (seconds_text(9000), "2.5 h"),
        (rate_text(20), "20 /s"),
        (rate_text(12_345), "12.3 k/s"),
        (rate_text(None), "–"),
    ],
)
def test_a_number_is_displayed_with_its_unit(text: str, expected: str) -> None:
    """Three significant digits in the unit that leaves the shortest number."""
    assert text == expected


@pytest.mark.parametrize(
    ("kind", "text", "names"),
    [
        (Size, "10 kb", ("10 kB",)),
        (Size, "1 mib", ("1 MiB",)),
        (Seconds, "10 Min", ("10 min",)),
        (Bandwidth, "1 gbit/s", ("1 Gbit/s",)),
        (Size, "100", ()),
        (Rate, "0 /s", ()),
        (Share, "120 %", ()),
        (Size, "big", ()),
        (Share, "2", ()),
    ],
)
def test_the_case_of_a_unit_is_corrected(kind: type[Quantity], text: str, names: tuple[str, ...]) -> None:
    """Only the case is corrected; a missing unit is not guessed."""
    assert correct_case(kind, text) == names


def test_limits_have_a_description_and_bounds() -> None:
    """The title describes the limits in words, `extra` has the bounds for the validation."""
    meta = limits(least="64 B", most="1 GB")
    assert meta.title == "at least 64 B, at most 1 GB"
    assert meta.extra == {"least": "64 B", "most": "1 GB"}
