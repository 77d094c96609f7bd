"""The user's function: imported by name, called with one message or with a batch; an exception does not end the PE."""

import importlib
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from frameworks.harmonicio.engine.errors import ConfigError
from frameworks.harmonicio.engine.observer import Observer
from frameworks.harmonicio.engine.wire.frame import Batch

__all__ = ["Batch", "UserFunction", "of_batch"]

logger = logging.getLogger(__name__)

Callable_ = TypeVar("Callable_", bound=Callable[..., Any])
_MAX_LOGGED = 20
"""Exceptions whose traceback is logged; later ones are only counted."""


def of_batch(function: Callable_) -> Callable_:
    """Mark a function, or a class whose instances are called, as taking a Batch instead of one message."""
    function.takes_batch = True  # type: ignore[attr-defined]  # a mark on the user's own function
    return function


class UserFunction:
    """The function that a PE calls: `spec` is "module:name" of a function, or of a class that is made with the
    settings.

    A message is a memoryview that is valid until the function returns: copy what you keep. A callable object may
    have two more methods: `idle()`, called whenever nothing waits, which returns the seconds after which it wants to
    be called again; and `close()`, called once all is processed. Its attribute `most` limits the messages of one
    call; its attribute `observer` is told of the waits and the frames of the PE.

    Args:
        spec: "module:name".
        settings: passed to a class.
        max_messages: messages that one call of a batch function gets at most.

    Raises:
        ConfigError: the function cannot be found.
    """

    def __init__(self, spec: str, settings: Mapping[str, Any], max_messages: int = 65536) -> None:
        named = _import(spec)
        self._call: Callable[[Any], object] = named(settings) if isinstance(named, type) else named
        self._takes_batch = bool(getattr(named, "takes_batch", False))
        self._idle: Callable[[], float | None] = getattr(self._call, "idle", _do_nothing)
        self._close: Callable[[], object] = getattr(self._call, "close", _do_nothing)
        self.max_messages = int(getattr(self._call, "most", max_messages)) if self._takes_batch else 1
        self.observer: Observer | None = getattr(self._call, "observer", None)
        self.processed = self.failed = 0
        self.busy_seconds = 0.0

    def run(self, batch: Batch) -> int:
        """Call the function on every message, in order; return for how many messages it raised an exception."""
        began, failed = time.monotonic(), 0
        if self._takes_batch:
            for first in range(0, len(batch), self.max_messages):
                part = batch.slice(first, min(len(batch), first + self.max_messages))
                failed += 0 if self._succeeds(part) else len(part)
        else:
            failed = sum(not self._succeeds(message) for message in batch)
        self.busy_seconds += time.monotonic() - began
        self.processed += len(batch) - failed
        self.failed += failed
        return failed

    def idle(self) -> float:
        """Call its `idle`; return the seconds until it wants the next call (math.inf = any time)."""
        try:
            seconds = self._idle()
            return math.inf if seconds is None else max(0.0, float(seconds))
        except BaseException:  # also SystemExit and CancelledError: nothing that a function raises ends its PE
            self._idle = _do_nothing
            logger.exception("the function's idle() raised an exception, and is not called any more")
            return math.inf

    def close(self) -> None:
        """Call its `close`, once everything is processed."""
        try:
            self._close()
        except BaseException:  # also SystemExit and CancelledError: nothing that a function raises ends its PE
            logger.exception("the function's close() raised an exception")

    def _succeeds(self, argument: Batch | memoryview) -> bool:
        try:
            self._call(argument)
        except BaseException:  # also SystemExit and CancelledError: nothing that a function raises ends its PE
            if self.failed < _MAX_LOGGED:
                logger.exception("the function raised an exception")
            return False
        return True


def _do_nothing() -> None:
    """Stand in for methods that a function does not have."""


def _import(spec: str) -> Any:
    module, _, name = spec.partition(":")
    if not module or not name:
        raise ConfigError(f"{spec!r} names no function; write module:function")
    if os.getcwd() not in sys.path:  # noqa: PTH109  sys.path holds strings
        sys.path.insert(0, os.getcwd())  # noqa: PTH109  sys.path holds strings
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise ConfigError(f"the function {spec!r} cannot be found: {problem}") from problem
