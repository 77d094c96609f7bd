"""Text from an old peer: JSON, or else a Python literal; parsed, never evaluated, and bounded before it is looked at.

What we answer is valid as both: double quotes, numbers, lists, objects; no null, true or false.
"""

import ast
import json
from typing import Any

from frameworks.harmonicio.errors import WireError

MOST_BYTES = 2**20
MOST_DEPTH = 32


def read_literal(data: bytes | str) -> Any:
    """The value that a text says; raises WireError when it is too long, too deep, or neither JSON nor a literal."""
    if len(data) > MOST_BYTES:
        raise WireError(f"a text of {len(data)} characters; at most {MOST_BYTES} are read")
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError:
        raise WireError("a text is not UTF-8") from None
    if _depth(text) > MOST_DEPTH:
        raise WireError(f"a text is nested deeper than {MOST_DEPTH}")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        raise WireError("a text is neither JSON nor a literal") from None


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
