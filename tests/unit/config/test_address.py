"""Addresses are parsed from host:port and formatted again."""

import pytest

from bench.config.address import Address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("b1:9092", Address("b1", 9092)),
        ("10.0.0.5:80", Address("10.0.0.5", 80)),
        ("[fd00::5]:5557", Address("fd00::5", 5557)),
    ],
)
def test_an_address_is_parsed_and_formatted(text: str, address: Address) -> None:
    """The host of an IPv6 address has no brackets, its text has them."""
    assert Address.parse(text) == address
    assert str(address) == text


@pytest.mark.parametrize("text", ["b1", "b1:", "b1:http"])
def test_an_address_without_port_is_an_error(text: str) -> None:
    """The caller gets a ValueError."""
    with pytest.raises(ValueError, match="invalid literal"):
        Address.parse(text)
