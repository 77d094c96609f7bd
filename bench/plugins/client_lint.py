"""Warnings about client settings and client code that measure something else than they seem to.

The list comes from what went wrong in other tools: a client without its checksums is fifty times slower, a blocking
poll stops everything else of a process, a flush a message makes the fastest client the slowest, a full queue counted
as sent is a loss.
"""

import ast
from collections.abc import Iterator

from msgspec import Struct

MAX_POLL = 0.01
"""Seconds; a client that is polled for longer blocks."""
COMPRESSIBLE_BELOW = 0.7
"""Entropy; fillers of 64 letters (0.75) are compressed to three quarters at the best, which still measures bytes."""


class ConfigWarning(Struct, frozen=True):
    """A mistake and its correction, in one line; a refused one must be corrected first, others are warnings."""

    text: str
    refused: bool = False


def warn_of_compression(compression: str, entropy: float, path: str) -> Iterator[ConfigWarning]:
    """Warn where messages shrink on their way, so that their size is not what is measured.

    Args:
        compression: The client's compression; "none" for no compression.
        entropy: Entropy of the filler, 0 to 1.
        path: Path of the setting in the scenario, for the message.
    """
    if compression != "none" and entropy < COMPRESSIBLE_BELOW:
        yield ConfigWarning(
            f"{path}: {compression} shrinks messages of entropy {entropy:g} to about"
            f" {max(entropy, 0.01):.0%}: the messages that travel are"
            f" smaller than the cell's size; set load.entropy=0.75 or more, or no compression"
        )


def warn_of_partitions(partitions: int, system: str, readers: int, path: str) -> Iterator[ConfigWarning]:
    """Warn where a framework has more tasks that read than there are partitions, so that some of them read nothing.

    Args:
        partitions: Number of partitions of a cell's topic.
        system: Name of the system, for the message.
        readers: Number of tasks that read at once.
        path: Path of the setting in the scenario, for the message.
    """
    if partitions < readers:
        yield ConfigWarning(
            f"{path}: {system} reads with {readers} tasks, but only {partitions} of them get a partition;"
            f" the others are idle; give at least {readers}, or leave it out"
        )


def in_code(source: str, name: str) -> Iterator[ConfigWarning]:
    """Yield the known mistakes in the text of a sender's module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _in_function(node, name)


def _in_function(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Iterator[ConfigWarning]:
    for node in ast.walk(function):
        where = f"{name}:{getattr(node, 'lineno', function.lineno)}"
        if _is_call(node, "poll") and _blocks(node):
            yield ConfigWarning(f"{where}: a blocking poll stops everything else of the load's process; call poll(0)")
        if _is_call(node, "flush") and function.name in ("send", "write", "produce"):
            yield ConfigWarning(
                f"{where}: a flush in {function.name} waits for a round trip to the broker for each message;"
                " flush in close"
            )
        if isinstance(node, ast.For | ast.While) and any(_is_call(inner, "flush") for inner in ast.walk(node)):
            yield ConfigWarning(
                f"{where}: a flush in a loop waits for a round trip to the broker for each message; flush after it"
            )
        if isinstance(node, ast.ExceptHandler) and _names(node.type, "BufferError") and not _tells(node):
            yield ConfigWarning(
                f"{where}: a full local queue is ignored, so messages count as sent although they were not accepted;"
                " return how many were accepted"
            )


def _is_call(node: ast.AST, method: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method


def _blocks(node: ast.AST) -> bool:
    """Return whether a poll has no time-out, or a written one that is too long."""
    assert isinstance(node, ast.Call)
    given = [*node.args, *(word.value for word in node.keywords if word.arg and "timeout" in word.arg)]
    if not given:
        return True
    value = given[0].value if isinstance(given[0], ast.Constant) else 0.0
    return isinstance(value, int | float) and value > MAX_POLL


def _names(kind: ast.expr | None, name: str) -> bool:
    return kind is not None and any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(kind))


def _tells(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler does anything about it: leaves the loop or the function, or counts."""
    does = (ast.Raise, ast.Return, ast.Break, ast.AugAssign)
    return any(isinstance(node, does) for statement in handler.body for node in ast.walk(statement))
