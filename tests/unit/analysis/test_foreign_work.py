"""The account of a window's CPU time says what share foreign work took, and what loss it explains."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis.foreign_work import (
    ACCOUNT_ERROR_S,
    ACCOUNT_ERROR_SHARE,
    LOSS_FACTOR,
    CpuAccount,
    account_cpu,
    explainable_delay,
    explainable_loss,
    foreign_share,
)
from bench.model.measurement import Measurement, PlannedTrial

ROLES = ("framework", "source", "load", "harness", "kernel")


def measured(cpu, ended="complete", **hosts):
    """Return a measurement with these CPU seconds."""
    return Measurement(
        PlannedTrial(1, 100.0, 1.0, 10.0, "search"), "", ended, 0.0, 12.0, 1100, 1100, 0, 1100, 0, 0, 0, 0,
        drained=True, late=0.0, blocked=0.0, cpu_requested_s=0.0, cpu_used_s=0.0, cpu=cpu, hosts=hosts,
    )  # fmt: skip


def test_foreign_work_is_what_none_of_our_roles_used():
    """The harness, the kernel's threads and the generator are ours, and stolen time is foreign."""
    cpu = dict.fromkeys(ROLES, 2.0) | {"busy": 13.0, "steal": 1.0, "available": 20.0, "seconds": 10.0}
    assert foreign_share(measured(cpu)) == pytest.approx(0.2)
    assert explainable_loss(measured(cpu)) == pytest.approx(
        LOSS_FACTOR * (0.2 - ACCOUNT_ERROR_SHARE - ACCOUNT_ERROR_S / 20)
    )
    assert explainable_delay(measured(cpu)) == pytest.approx(10 * explainable_loss(measured(cpu)))


def test_time_stolen_from_idle_cores_is_foreign():
    """It is stolen even if the account of the busy time does not show it."""
    assert foreign_share(measured({"framework": 5.0, "busy": 3.0, "steal": 2.0, "available": 20.0})) == 0.1


@pytest.mark.parametrize("ended", ["framework died", "source died"])
def test_nothing_is_known_after_a_death(ended):
    """The CPU time of a dead process is not recorded."""
    assert account_cpu(measured({"busy": 19.0, "steal": 0.0, "available": 20.0}, ended)) == []
    assert foreign_share(measured({}, ended)) == explainable_loss(measured({}, ended)) == 0


def test_the_host_with_most_stolen_time_counts():
    """The slowest host of a cluster holds the others up."""
    hosts = {"b1": {"steal": 1.0, "available": 20.0}, "b2": {"steal": 4.0, "available": 20.0}, "b3": {}}
    assert foreign_share(measured({}, **hosts)) == 0.2


@given(foreign=st.floats(-5, 100), available=st.floats(0.1, 1000))
def test_shares_are_never_negative(foreign, available):
    """An account that is off by a little says that there was no foreign work."""
    account = CpuAccount(foreign, available)
    assert 0 <= account.certain_share <= account.share


@given(foreign=st.floats(0, 10), more=st.floats(0, 10))
def test_more_foreign_work_explains_more(foreign, more):
    """More foreign work explains at least as much, and never more than everything."""
    cpu = {"framework": 5.0, "busy": 5.0 + foreign, "steal": 0.0, "available": 20.0}
    less, greater = (explainable_loss(measured(cpu | {"steal": steal})) for steal in (0.0, more))
    assert less <= greater <= 1
