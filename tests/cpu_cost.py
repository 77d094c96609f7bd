"""How much CPU time may be spent for a cost that was asked for, on a machine that a hypervisor pauses."""

PAUSES_S = 0.02
"""Longer than what pauses of a virtual machine's core add to one test; the kernel counts them as CPU time. Up to 4.6 ms
in 0.2 s were seen."""


def assert_spent(used: float, requested: float) -> None:
    """Check that CPU seconds were spent to within 1 %, and that nothing but pauses of the machine adds to them."""
    assert 0.99 * requested <= used <= 1.01 * requested + PAUSES_S
