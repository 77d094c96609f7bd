"""A short slice of a campaign: the same attempts each time, in CI."""

from itertools import islice

import pytest
from msgspec.structs import replace

from tests.campaign import disks
from tests.campaign.campaign import Campaign
from tests.campaign.faults import plan_attempts
from tests.campaign.outcomes import Log
from tests.campaign.subjects import SUBJECTS

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(900)]
SEED, KNOWN = 1, [subject for subject in SUBJECTS if subject.name == "known"]
MAX_FAULTS = 6
"""Of each attempt, so that the slice takes less than five minutes."""
ATTEMPTS = [
    replace(attempt, faults=attempt.faults[:MAX_FAULTS])
    for attempt in islice(plan_attempts(SEED, KNOWN, is_root=True), 6)
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
