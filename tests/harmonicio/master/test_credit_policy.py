"""The master's data port shares the free space of its queue out, and lowers credit that it announced."""

from frameworks.harmonicio.engine.master.credit_policy import MAX_CREDIT, PAUSE_S, CreditPolicy

MEGABYTE = 2**20


def test_free_space_is_shared_by_the_connections():
    """Half of the bytes is kept for credit that was announced before."""
    policy = CreditPolicy(MEGABYTE)
    assert policy.compute((1000, 8 * MEGABYTE), 4, 0.0) == (250, MEGABYTE)
    assert policy.compute((10**9, 10**12), 1, 0.0) == MAX_CREDIT


def test_there_is_no_credit_without_space_for_a_large_message():
    """Nor with fewer free messages than connections."""
    policy = CreditPolicy(MEGABYTE)
    assert policy.compute((1000, MEGABYTE - 1), 1, 0.0) == (0, 0)
    assert policy.compute((3, 8 * MEGABYTE), 4, 0.0) == (0, 0)


def test_a_failed_journal_pauses_the_credit():
    """It is given again after the pause."""
    policy = CreditPolicy(MEGABYTE)
    policy.pause(10.0)
    credit = [policy.compute((1000, 8 * MEGABYTE), 1, now)[0] for now in (10.0 + PAUSE_S / 2, 10.0 + PAUSE_S)]
    assert credit == [0, 1000]


def test_credit_below_half_of_what_was_announced_must_be_sent_to_all():
    """Once, until it has halved again."""
    policy = CreditPolicy(MEGABYTE)
    policy.announce((10, 100))
    assert [policy.lower((10, size)) for size in (50, 49, 49, 20)] == [False, True, False, True]
