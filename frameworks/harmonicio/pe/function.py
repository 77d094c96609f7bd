"""The user's function: found by name, called with one message or with a batch; an exception does not end the PE."""

import importlib
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from frameworks.harmonicio.errors import ConfigError
from frameworks.harmonicio.wire.frame import Batch

__all__ = ["Batch", "Function", "of_batch"]

logger = logging.getLogger(__name__)

Callable_ = TypeVar("Callable_", bound=Callable[..., Any])
_MOST_TOLD = 20
"""Exceptions of a PE's life whose traceback is logged; the others are counted."""


def of_batch(function: Callable_) -> Callable_:
    """Mark a function (or a class whose instances are called) as one of a Batch instead of one message."""
    function.takes_batch = True  # type: ignore[attr-defined]  # a mark on the user's own function
    return function


class Function:
    """What a PE does with messages: `spec` is "module:name", of a function, or of a class that is made with the settings.

    A message is a memoryview that is valid until the function returns: copy what you keep. `most` bounds how many messages one
    call of a function of a batch is given.
    """

    def __init__(self, spec: str, settings: Mapping[str, Any], most: int = 65536) -> None:
        named = _found(spec)
        self._call: Callable[[Any], object] = named(settings) if isinstance(named, type) else named
        self._of_batch = bool(getattr(named, "takes_batch", False))
        self._most = int(getattr(self._call, "most", most))
        self.processed = self.failed = 0
        self.busy = 0.0

    def run(self, batch: Batch) -> int:
        """Call it on every message, in order; how many of them it raised an exception for."""
        began, failed = time.monotonic(), 0
        if self._of_batch:
            for first in range(0, len(batch), self._most):
                part = batch.part(first, min(len(batch), first + self._most))
                failed += 0 if self._survived(part) else len(part)
        else:
            failed = sum(not self._survived(message) for message in batch)
        self.busy += time.monotonic() - began
        self.processed += len(batch) - failed
        self.failed += failed
        return failed

    def _survived(self, argument: Batch | memoryview) -> bool:
        try:
            self._call(argument)
        except (Exception, SystemExit):
            if self.failed < _MOST_TOLD:
                logger.exception("the function raised an exception")
            return False
        return True


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
