"""A processing engine (PE): a process that runs a user's function on every message of a stream."""

from frameworks.harmonicio.engine.pe.function import Batch, of_batch

__all__ = ["Batch", "of_batch"]
