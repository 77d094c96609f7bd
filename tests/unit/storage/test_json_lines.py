"""Files of one record a line outlive a kill."""

import pytest
from msgspec import Struct

from bench.errors import UsageError
from bench.storage.json_lines import append_line, cut_partial_line, read_lines


class Coordinate(Struct, frozen=True):
    """A record."""

    x: int


def test_whole_lines_are_read_and_a_partial_one_is_not(tmp_path):
    """It is cut off before the next line is appended."""
    file = tmp_path / "points.jsonl"
    assert read_lines(file, Coordinate) == []
    append_line(file, b'{"x":1}')
    file.write_bytes(file.read_bytes() + b'{"x":')
    assert read_lines(file, Coordinate) == [Coordinate(1)]
    cut_partial_line(file)
    append_line(file, b'{"x":2}')
    assert read_lines(file, Coordinate) == [Coordinate(1), Coordinate(2)]


def test_a_wrong_line_is_named(tmp_path):
    """With its number."""
    (tmp_path / "points.jsonl").write_bytes(b'{"x":1}\n{"y":1}\n')
    with pytest.raises(UsageError, match=r"points\.jsonl:2"):
        read_lines(tmp_path / "points.jsonl", Coordinate)


def test_a_line_of_too_many_levels_is_named(tmp_path):
    """It is no traceback."""
    (tmp_path / "points.jsonl").write_bytes(b'{"y":' + b"[" * 100_000 + b"\n")
    with pytest.raises(UsageError, match=r"points\.jsonl:1: cannot be read"):
        read_lines(tmp_path / "points.jsonl", Coordinate)
