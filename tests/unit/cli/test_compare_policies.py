"""`bench compare` of runs of kind elasticity shows the policies of both, and refuses runs of different loads."""

import pytest
from msgspec.structs import replace
from sample_policies import QUICK_ONE, SCENARIO, make_policy_run
from sample_runs import QUICK, make_run

from bench.cli.compare import compare
from bench.config.scenario import LoadSettings
from bench.errors import UsageError

pytest.importorskip("typer")


def test_policies_of_both_runs_stand_one_below_the_other(tmp_path, capsys):
    """With a sentence for each policy, what differs in the settings, and what one run cannot show."""
    other = replace(SCENARIO, elasticity=replace(SCENARIO.elasticity, most=4))
    compare(make_policy_run(tmp_path / "a"), make_policy_run(tmp_path / "b", other, [QUICK_ONE]), fail_if="")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "engine/source"
    assert [line.split()[:2] for line in lines[2:5]] == [["slow", "A"], ["quick", "A"], ["quick", "B"]]
    assert "slow, B compared with A: only in the first run" in lines
    assert any(line.startswith("quick, B compared with A: under target for as long") for line in lines)
    assert lines[-2] == "differs: elasticity.most: 16 → 4"
    assert lines[-1].startswith("One run each: differences have no interval.")


def test_runs_of_different_loads_or_kinds_are_refused(tmp_path):
    """In one line; an exit code for a slower cell means nothing for policies."""
    first = make_policy_run(tmp_path / "a")
    other = make_policy_run(tmp_path / "b", replace(SCENARIO, load=LoadSettings(seed=2)))
    with pytest.raises(UsageError, match=r"has another load than the other run \(load\.seed\)"):
        compare(first, other, fail_if="")
    with pytest.raises(UsageError, match="is of kind map, the other run of kind elasticity"):
        compare(first, make_run(tmp_path / "map", QUICK, unfinished=()), fail_if="")
    with pytest.raises(UsageError, match="is for runs of kind map"):
        compare(first, first, fail_if="slower")
