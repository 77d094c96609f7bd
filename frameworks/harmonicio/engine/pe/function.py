"""The user's function: found by name, called with one message or with a batch; an exception does not end the PE."""

import importlib
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from frameworks.harmonicio.engine.errors import ConfigError
from frameworks.harmonicio.engine.wire.frame import Batch

__all__ = ["Batch", "Function", "of_batch"]

logger = logging.getLogger(__name__)

Callable_ = TypeVar("Callable_", bound=Callable[..., Any])
_MAX_TOLD = 20
"""Exceptions of a PE's life whose traceback is logged; the others are counted."""


def of_batch(function: Callable_) -> Callable_:
    """Mark a function (or a class whose instances are called) as one of a Batch instead of one message."""
    function.takes_batch = True  # type: ignore[attr-defined]  # a mark on the user's own function
    return function


class Function:
    """What a PE does with messages: `spec` is "module:name", of a function, or of a class that is made with the settings.

    A message is a memoryview that is valid until the function returns: copy what you keep. `most` bounds how many messages one
    call of a function of a batch is given. An object that is called may offer two methods besides: `idle()`, called whenever
    nothing waits, which returns the seconds after which it wants to be called again; and `close()`, called once all is processed.
    """

    def __init__(self, spec: str, settings: Mapping[str, Any], most: int = 65536) -> None:
        named = _found(spec)
        self._call: Callable[[Any], object] = named(settings) if isinstance(named, type) else named
        self._of_batch = bool(getattr(named, "takes_batch", False))
        self._idle: Callable[[], float | None] = getattr(self._call, "idle", _nothing)
        self._close: Callable[[], object] = getattr(self._call, "close", _nothing)
        self.most = int(getattr(self._call, "most", most)) if self._of_batch else 1
        """messages that one call is given"""
        self.processed = self.failed = 0
        self.busy = 0.0

    def run(self, batch: Batch) -> int:
        """Call it on every message, in order; how many of them it raised an exception for."""
        began, failed = time.monotonic(), 0
        if self._of_batch:
            for first in range(0, len(batch), self.most):
                part = batch.part(first, min(len(batch), first + self.most))
                failed += 0 if self._survived(part) else len(part)
        else:
            failed = sum(not self._survived(message) for message in batch)
        self.busy += time.monotonic() - began
        self.processed += len(batch) - failed
        self.failed += failed
        return failed

    def idle(self) -> float:
        """Let it do what it has put off; the seconds after which it wants to be asked again (math.inf for whenever)."""
        try:
            wish = self._idle()
            return math.inf if wish is None else max(0.0, float(wish))
        except (Exception, SystemExit):
            self._idle = _nothing
            logger.exception("the function's idle() raised an exception, and is not called any more")
            return math.inf

    def close(self) -> None:
        """Everything is processed: let it finish."""
        try:
            self._close()
        except (Exception, SystemExit):
            logger.exception("the function's close() raised an exception")

    def _survived(self, argument: Batch | memoryview) -> bool:
        try:
            self._call(argument)
        except (Exception, SystemExit):
            if self.failed < _MAX_TOLD:
                logger.exception("the function raised an exception")
            return False
        return True


def _nothing() -> None:
    """For a function that has nothing to do between messages."""


def _found(spec: str) -> Any:
    module, _, name = spec.partition(":")
    if not module or not name:
        raise ConfigError(f"{spec!r} names no function; write module:function")
    if os.getcwd() not in sys.path:  # noqa: PTH109  a string among strings
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise ConfigError(f"the function {spec!r} cannot be found: {problem}") from problem
