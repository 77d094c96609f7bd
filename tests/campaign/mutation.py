"""Invented input: valid input with changes, the same for the same seed. Pure."""

import random
import re
from collections.abc import Sequence

MAX_BYTES = 20_000
MAX_CHANGES = 6
RANDOM_SHARE = 0.02
"""Of inputs that are nothing but random bytes."""
_INTEGERS = tuple(
    number.to_bytes(size, "little")
    for size in (2, 4, 8)
    for number in (0, 1, 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1)
)
_DIGITS = re.compile(rb"[0-9]+")
_NUMBERS = (b"0", b"-1", b"1e999", b"9" * 30, b"9" * 5000, b"1.5", b"null", b"true", b"[]", b"{}", b'""')
_TEXTS = (
    "\x00", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "\\ud800", "\\u0000",
    "<script>alert(1)</script>",
    "</script>", "]]>", "#eval(\"1\")", "$x$", "`", "../../etc/passwd", "..", "/", "\\", "\u2028", "\u202e", "%FF",
    "{{7*7}}",
    "é", "日本", "'", '"', "&amp;", "\n", "\r\n", "\t", "- a\n", ": ", "!!python/object:x", "&a [*a]", "*a", "|\n", "@",
)  # fmt: skip
"""Of UTF-8, of HTML, Typst, templates, paths, YAML; one is no valid UTF-8 when it is written as Latin-1."""
_TOKENS = tuple(text.encode("latin-1", "ignore") or text.encode() for text in _TEXTS)


class Mutator:
    """Draws inputs from a pool of seeds, which may grow.

    Args:
        seeds: Valid inputs, at least one.
        seed: Of the random choices.
        max_bytes: Of an input; longer ones are cut.
    """

    def __init__(self, seeds: Sequence[bytes], seed: int | str, max_bytes: int = MAX_BYTES) -> None:
        self.pool = list(seeds)
        self._chance, self._max_bytes = random.Random(seed), max_bytes

    def draw(self) -> bytes:
        """Return a new input."""
        chance = self._chance
        if chance.random() < RANDOM_SHARE:
            return chance.randbytes(chance.randrange(400))
        data = bytearray(chance.choice(self.pool))
        for _ in range(chance.randint(1, MAX_CHANGES)):
            data = self._change(data)
        return bytes(data[: self._max_bytes])

    def _change(self, data: bytearray) -> bytearray:
        """Return the data with one change."""
        chance = self._chance
        at = chance.randrange(len(data) + 1)
        length = min(len(data) - at, 1 << chance.randrange(10))
        match chance.randrange(9):
            case 0 if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at : at + length] = chance.randbytes(length)
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = data[at : at + length] * chance.choice((1, 1, 2, 50))
            case 4:
                data[at:at] = chance.choice(_TOKENS)
            case 5:
                number = chance.choice(_INTEGERS)
                data[at : at + len(number)] = number
            case 6:
                self._replace_number(data, at)
            case 7:
                other = chance.choice(self.pool)
                data[at:] = other[chance.randrange(len(other) + 1) :]
            case _:
                del data[at:]
        return data

    def _replace_number(self, data: bytearray, at: int) -> None:
        """Replace the next decimal number by another, or by something else."""
        found = _DIGITS.search(data, at)
        if found is not None:
            data[found.start() : found.end()] = self._chance.choice(_NUMBERS)
