"""A processing engine: a process that runs a function of the user on every message of a stream."""

from frameworks.harmonicio.engine.pe.function import Batch, of_batch

__all__ = ["Batch", "of_batch"]
