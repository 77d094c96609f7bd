"""The parts of a campaign run side by side, are resumed, and end with their parent."""

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.bench_command import wait_until
from tests.campaign import parts
from tests.campaign.campaign import Campaign, Limits
from tests.campaign.outcomes import AttemptRecord, FaultRecord, Figures, HistoryRecord, Log, bars_missed, progress

ROOT = Path(__file__).parents[2]
BEGUN = [
    FaultRecord(0, "known", "kill", "harness", "bench 7", 1.5, ended=True),
    AttemptRecord(0, "known", 60.0, 0, "", ()),
    HistoryRecord(1, 30.0, 2000, 2000, 2000, 5, 0, ()),
]


def started(*words):
    """Start a campaign whose output can be read line by line."""
    command = [sys.executable, "-m", "tests.campaign", *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize(
    "limits", [Limits(seconds=90), Limits(900, attempts=2), Limits(900, faults=1)], ids=["time", "attempts", "faults"]
)
def test_what_was_done_before_counts_towards_the_limits(limits, tmp_path):
    """A campaign that had reached them makes no further attempt."""
    log = Log(tmp_path / "known.jsonl")
    for record in BEGUN:
        log.add(record)
    Campaign(tmp_path, log, 1, print).run(["known", "history"], limits)
    assert log.records() == BEGUN


def test_an_attempt_that_raises_is_a_violation(tmp_path, monkeypatch):
    """And the ones behind it are made."""

    def fail(*_):
        raise KeyError("x")

    monkeypatch.setattr(Campaign, "_make", fail)
    log = Log(tmp_path / "known.jsonl")
    Campaign(tmp_path, log, 1, print).run(["known"], Limits(900, attempts=2))
    assert [record.violations for record in log.records()] == [("the campaign failed: KeyError: 'x'",)] * 2


def test_progress_and_missed_bars_are_told_in_words():
    """With the numbers that there are."""
    assert progress(BEGUN).startswith("1 kills of the harness, 0 faults of others, 2,000 messages acknowledged, 0 lost")
    assert bars_missed(BEGUN)[-1] == "2,000 messages acknowledged, not 10,000,000"


@pytest.mark.campaign
def test_a_campaign_ends_with_its_table_and_goes_on_when_it_is_resumed(tmp_path):
    """Its figures are in its folder, and grow; it goes on where it was."""
    first, _ = started("--out", tmp_path, "run", "--seed", 3, "--subjects", "input", "--hours", 0.002).communicate(
        timeout=300
    )
    (folder,) = tmp_path.glob("campaign-3-*")
    before = msgspec.json.decode((folder / "figures.json").read_bytes(), type=Figures)
    assert (before.inputs > 0, before.violations) == (True, 0), first
    assert "| fuzzing target | inputs |" in first
    process = started("run", "--resume", folder, "--hours", 0.004)
    second, _ = process.communicate(timeout=300)
    assert process.returncode == 0, second
    assert msgspec.json.decode((folder / "figures.json").read_bytes(), type=Figures).inputs > before.inputs


@pytest.mark.campaign
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_parts_end_with_the_campaign(number, tmp_path):
    """Also when it is killed: they see that their standard input has ended."""
    process = started("--out", tmp_path, "run", "--subjects", "input")
    wait_until(lambda: list(tmp_path.glob("*/inputs.jsonl")), 120, "the first inputs")
    process.send_signal(number)
    process.communicate(timeout=300)
    assert process.returncode == (130 if number == signal.SIGTERM else -signal.SIGKILL)
    wait_until(lambda: not parts_of(tmp_path), 120, "their end")


def parts_of(folder):
    """Return the processes that have a folder in their command line."""
    return [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(folder).encode() in content(path)]


def content(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_each_subject_belongs_to_one_part():
    """And each part has its own of them."""
    plan = parts.CampaignPlan(1, parts.SUBJECTS, Limits(1))
    found = [subject for name in parts.NAMES for subject in parts._subjects(name, plan)]
    assert sorted(found) == sorted(parts.SUBJECTS)
