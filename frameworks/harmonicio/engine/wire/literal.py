"""Text from an old peer: JSON, or else a Python literal; parsed, never evaluated, and bounded before it is looked at.

What we answer is valid as both: double quotes, numbers, lists, objects; no null, true or false.
"""

import ast
import json
import math
from typing import Any

from frameworks.harmonicio.engine.errors import WireError

MAX_BYTES = 2**20
MAX_DEPTH = 32
_INTEGERS = range(-(2**63), 2**64)


def read_literal(data: bytes | str) -> Any:
    """The value that a text says, which JSON can say; raises WireError when it is too long, too deep, or something else."""
    if len(data) > MAX_BYTES:
        raise WireError(f"a text of {len(data)} characters; at most {MAX_BYTES} are read")
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError:
        raise WireError("a text is not UTF-8") from None
    if _depth(text) > MAX_DEPTH:
        raise WireError(f"a text is nested deeper than {MAX_DEPTH}")
    value = _parsed(text)
    _check(value)
    return value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        raise WireError("a text is neither JSON nor a literal") from None


def _check(value: Any) -> None:
    """Raise WireError when others could not write the value as JSON, or not read its numbers; a tuple is a list there."""
    match value:
        case None | bool() | str():
            pass
        case int() if value in _INTEGERS:
            pass
        case float() if math.isfinite(value):
            pass
        case list() | tuple():
            for part in value:
                _check(part)
        case dict() if all(isinstance(key, str) for key in value):
            for part in value.values():
                _check(part)
        case _:
            raise WireError(f"a text has what JSON has not, or a number beyond 64 bits: of type {type(value).__name__}")


def write_literal(value: Any) -> str:
    """A text that is JSON and a Python literal at once; None becomes "None", and truth a number."""
    return json.dumps(_plain(value), ensure_ascii=True)


def _plain(value: Any) -> Any:
    if value is None:
        return "None"
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value


def _depth(text: str) -> int:
    """How deep brackets are nested at most; brackets in strings count too, which only errs to the safe side.

    Operators that a parser would nest (a long row of minus signs, say) count like brackets.
    """
    deepest = depth = row = 0
    for character in text:
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        row = row + 1 if character in "-+~" else 0
        deepest = max(deepest, depth + row)
    return deepest
