"""Text of the legacy protocol: JSON or a Python literal, parsed within limits and never evaluated.

Text written here is valid as both: double quotes, numbers, lists, objects; no null, true or false.
"""

import ast
import json
import math
import warnings
from typing import Any

from frameworks.harmonicio.engine.errors import ProtocolError

MAX_BYTES = 2**20
MAX_DEPTH = 32
_INTEGERS = range(-(2**63), 2**64)


def read_literal(data: bytes | str) -> Any:
    """Return the value of a text, limited to what JSON can express.

    Raises:
        ProtocolError: the text is too long, nested too deep, or neither JSON nor a literal.
    """
    if len(data) > MAX_BYTES:
        raise ProtocolError(f"a text of {len(data)} characters; at most {MAX_BYTES} are read")
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError:
        raise ProtocolError("a text is not UTF-8") from None
    if _depth(text) > MAX_DEPTH:
        raise ProtocolError(f"a text is nested deeper than {MAX_DEPTH}")
    value = _parse(text)
    _check(value)
    return value


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings(action="ignore"):  # about the text, such as its escapes: nobody's log needs them
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        raise ProtocolError("a text is neither JSON nor a literal") from None


def _check(value: Any) -> None:
    """Raise ProtocolError when JSON cannot express the value, or others cannot read its numbers; a tuple is a list."""
    match value:
        case None | bool():
            pass
        case str():
            _check_text(value)
        case int() if value in _INTEGERS:
            pass
        case float() if math.isfinite(value):
            pass
        case list() | tuple():
            for part in value:
                _check(part)
        case dict() if all(isinstance(key, str) for key in value):
            for key, part in value.items():
                _check_text(key)
                _check(part)
        case _:
            name = type(value).__name__
            raise ProtocolError(f"a text has a value of type {name} that JSON cannot express, or beyond 64 bits")


def _check_text(text: str) -> None:
    """Raise ProtocolError when a text has half a character of two ("\\ud800"): it could never be written again."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ProtocolError("a text has a character that UTF-8 cannot express") from None


def write_literal(value: Any) -> str:
    """Return a text that is JSON and a Python literal at once; None becomes "None", and a boolean a number."""
    return json.dumps(_to_plain(value), ensure_ascii=True)


def _to_plain(value: Any) -> Any:
    if value is None:
        return "None"
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, dict):
        return {str(key): _to_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(part) for part in value]
    return value


def _depth(text: str) -> int:
    """Return an upper bound of the nesting depth: brackets within strings count, too.

    Operators that a parser would nest (a long row of minus signs) count like brackets.
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
