"""A short slice of a campaign: the same attempts each time, in CI."""

from itertools import islice

import pytest
from msgspec.structs import replace

from tests.campaign import clocks, disks
from tests.campaign.campaign import Campaign
from tests.campaign.faults import Attempt, Fault, plan_attempts
from tests.campaign.outcomes import Log
from tests.campaign.subjects import SUBJECTS

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(900)]
SEED, KNOWN = 1, [subject for subject in SUBJECTS if subject.name == "known"]
MAX_FAULTS = 6
"""Of each attempt, so that the slice takes less than four minutes."""
ATTEMPTS = [
    replace(attempt, faults=attempt.faults[:MAX_FAULTS])
    for attempt in islice(plan_attempts(SEED, KNOWN, is_root=True), 4)
    if disks.can_mount() or all(fault.kind not in ("disk full", "read only") for fault in attempt.faults)
]  # fmt: skip


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """One campaign, so that an undisturbed run is made once."""
    folder = tmp_path_factory.mktemp("campaign")
    return Campaign(folder, Log(folder / "runs.jsonl"), SEED, print)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: f"{attempt.number}-{attempt.subject}")
def test_everything_holds_under_these_faults(attempt, campaign):
    """Journals only grow, nothing is left behind, the run ends with the same answers, and no message is lost."""
    assert campaign.make_attempt(attempt).violations == ()


@pytest.mark.skipif(not clocks.can_step(), reason="no C compiler (cc)")
@pytest.mark.parametrize("chance", [0.0, 0.99], ids=["back", "forth"])
def test_a_clock_that_steps_changes_no_result(chance, campaign):
    """By a month."""
    fault = Fault("clock stepped", "machine", 3.0, chance)
    assert campaign.make_attempt(Attempt(1002, "known", (fault,))).violations == ()


@pytest.mark.skipif(not clocks.can_step(), reason="no C compiler (cc)")
def test_no_message_is_lost_while_clocks_step_and_limits_are_reached(campaign):
    """In HarmonicIO, whose processes are limited and whose clocks step by up to a month."""
    faults = [
        Fault("clock stepped", "clock", 0.3, 0.99, 1.0), Fault("few descriptors", "master", 0.3, 0.0, 2.0),
        Fault("few descriptors", "worker", 0.3, 0.5, 2.0), Fault("kill", "PE", 0.5, 0.1),
        Fault("clock stepped", "clock", 0.3, 0.0, 1.0), Fault("few descriptors", "PE", 0.3, 0.5, 2.0),
        Fault("little memory", "master", 0.3, 0.5, 2.0), Fault("little memory", "worker", 0.3, 0.5, 2.0),
        Fault("little memory", "PE", 0.3, 0.5, 2.0),
    ]  # fmt: skip
    assert campaign.make_attempt(Attempt(1003, "history", tuple(faults))).violations == ()
