"""Limits of a batch: the CPU time that its messages ask for, and the memory that they take."""

from bench.model.cell import Cell

_MAX_BYTES, _MAX_MESSAGES = 8 * 10**6, 10_000


def max_batch_messages(cell: Cell, cpu_seconds: float) -> int:
    """Return how many messages of a cell may be in one batch that asks for at most `cpu_seconds`; 1 at least."""
    by_cost = int(cpu_seconds / cell.cpu_seconds) if cell.cpu_seconds else _MAX_MESSAGES
    return max(1, min(by_cost, max_messages_in_memory(cell)))


def max_messages_in_memory(cell: Cell) -> int:
    """Return how many messages of a cell may lie in memory at once; 1 at least."""
    return max(1, min(_MAX_MESSAGES, _MAX_BYTES // cell.message_bytes))
