"""`bench advise` names what each system of a run needs, or why there is no advice; mistakes are one line."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from sample_policies import SCENARIO, make_decision, make_policy, make_policy_run
from sample_runs import QUICK, make_result, make_run, open_run_folder

from bench.cli.advise import advise
from bench.config.scenario import Grid, LoadSettings
from bench.errors import UsageError
from bench.model.message_sizes import MessageSize
from bench.plugins import registry
from bench.units import Seconds

typer = pytest.importorskip("typer")

ONE_POINT = {"size": "10kB", "cost": "0ms"}
LEFT_OUT = {"size": "", "cost": "", "headroom": "20 %", "load": None, "interval": "60 s", "pause": "0 s"}
LEFT_OUT |= {"plot": None, "changes": None, "as_json": False}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("advise") / "run", trials=2)


def call(folder, rate, **options):
    """Return the exit code of the verb."""
    with pytest.raises(typer.Exit) as ending:
        advise(folder, rate=rate, **{**LEFT_OUT, **options})
    return ending.value.exit_code


def advice(capsys, folder, rate, **options):
    """Return the exit code, and the advice by system, from JSON."""
    code = call(folder, rate, as_json=True, **options)
    return code, {one["system"]: one for one in json.loads(capsys.readouterr().out)["advice"]}


def test_every_system_gets_advice_the_cheapest_first(capsys, run):
    """The fastest system needs the fewest cores; a plugin's own setting says how many workers that are."""
    code, found = advice(capsys, run, "1M/s", **ONE_POINT)
    assert code == 0
    cores = [one["cores"]["enough"] for one in found.values() if not one["reason"]]
    assert cores == sorted(cores)
    assert next(iter(found)) == "python/kafka"
    assert found["python/kafka"]["measured"]["setting"] == "settings.python.processes"
    assert found["python/kafka"]["partitions"] == found["python/kafka"]["workers"]["enough"]
    assert found["spark/tcp"]["partitions"] is None


def test_a_table_says_what_it_rests_on(capsys, run):
    """With the load that was asked for above it, and the model below."""
    assert call(run, "100k/s", size="20kB", cost="1ms") == 0
    said = capsys.readouterr().out
    assert said.startswith("100 k/s of 20 kB, 1 ms of CPU time each, with 20% free: a maximum of 125 k/s")
    assert "settings.spark.cores" in said
    assert "between: size, cost; extrapolated: cores" in said
    assert "Model: each worker adds" in said


def test_a_system_without_an_answer_is_named(capsys, run):
    """Here the cell is unsupported; bounds give bounds."""
    _, found = advice(capsys, run, "10k/s", size="1MB", cost="10ms")
    assert found["spark/tcp"]["reason"].startswith("1 MB, 10 ms: unsupported")
    assert found["python/kafka"]["reason"] == "1 MB, 10 ms: no result"
    _, found = advice(capsys, run, "10k/s", size="1MB", cost="0ms")
    assert found["spark/tcp"]["workers"]["enough"] is None
    assert found["spark/tcp"]["workers"]["least"] > 2


def test_cores_that_only_the_load_generator_had_do_not_count(tmp_path, capsys):
    """Of two cores the framework had one."""
    grid = Grid((MessageSize(100),), (Seconds(0),))
    scenario = QUICK.__class__("one", ("python/kafka",), grid, load=LoadSettings(cores=1))
    with open_run_folder(tmp_path / "run", scenario) as store:
        (cell,) = scenario.cells()
        store.save_result(cell, make_result(cell))
    code, found = advice(capsys, tmp_path / "run", "1k/s")
    assert code == 0
    assert (found["python/kafka"]["measured"]["workers"], found["python/kafka"]["measured"]["cores"]) == (1, 1)


def test_a_system_whose_plugin_is_not_here_has_no_advice(tmp_path, capsys):
    """Exit code 4: there is advice for no system."""
    scenario = QUICK.__class__("one", ("gone/kafka",), Grid((MessageSize(100),), (Seconds(0),)))
    with open_run_folder(tmp_path / "run", scenario) as store:
        (cell,) = scenario.cells()
        store.save_result(cell, make_result(cell))
    code, found = advice(capsys, tmp_path / "run", "1k/s")
    assert code == 4
    assert "unknown framework 'gone'" in found["gone/kafka"]["reason"]
    assert call(tmp_path / "run", "1k/s") == 4
    assert "gone/kafka: no advice: unknown framework" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"rate": "fast"}, "--rate fast: found 'fast'; allowed: a rate such as"),
        ({"rate": "5 K/s"}, "did you mean '5 k/s'?"),
        ({"rate": "1k/s"}, "--size: found nothing, and the run has 100 B, 10 kB, 1 MB"),
        ({"rate": "1k/s", "size": "100B"}, "--cost: found nothing, and the run has 0 ms, 10 ms"),
        ({"rate": "1k/s", "size": "0B", "cost": "0ms"}, "--size 0B: found no byte"),
        ({"rate": "1k/s", "headroom": "100%", **ONE_POINT}, "--headroom 100%: leaves nothing"),
        ({"rate": "1e300/s", **ONE_POINT}, "--rate 1e300/s: is too much; allowed: at most"),
        ({"rate": "1k/s", "size": "2GB", "cost": "0ms"}, "--size 2GB: is too much; allowed: at most 1 GB"),
        ({"rate": "1k/s", "size": "1kB", "cost": "1e308s"}, "--cost 1e308s: is too much; allowed: at most 1 h"),
        ({"rate": "1k/s", "interval": "5 s", **ONE_POINT}, "--interval: policies are simulated with --load only"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line(run, options, complaint):
    """It names the option, what was found and what is allowed."""
    with pytest.raises(UsageError) as mistake:
        advise(run, **{**LEFT_OUT, **options})
    assert complaint in str(mistake.value)
    assert "\n" not in str(mistake.value)


def test_a_run_without_results_or_cores_is_refused(tmp_path):
    """Both say what to do."""
    with open_run_folder(tmp_path / "empty", QUICK):
        pass
    with pytest.raises(UsageError, match="no result yet; go on with: bench run"):
        call(tmp_path / "empty", "1k/s")
    scenario = QUICK.__class__("one", ("python/kafka",), Grid((MessageSize(100),), (Seconds(0),)))
    with open_run_folder(tmp_path / "imported", scenario, cores=None) as store:
        (cell,) = scenario.cells()
        store.save_result(cell, make_result(cell))
    with pytest.raises(UsageError, match="does not say how many cores"):
        call(tmp_path / "imported", "1k/s")


def test_the_example_of_the_documentation_gives_advice(capsys):
    """A real run of three systems on two cores."""
    example = Path(__file__).parents[3] / "docs" / "example"
    code, found = advice(capsys, example, "50k/s", size="10kB", cost="100us")
    assert code == 0
    assert next(iter(found)) == "python/kafka"
    assert all(one["workers"]["least"] <= one["workers"]["enough"] for one in found.values())
    assert found["python/kafka"]["measured"]["cores"] == 2


def test_a_short_run_of_policies_gives_advice_where_there_is_no_map(tmp_path, capsys):
    """Its workers took 10 messages/s each; the framework's setting says how many to run."""
    decisions = [make_decision(5.0 * number, 8.0, 1, 1) for number in range(1, 8)]
    policy = make_policy("fixed", *decisions)
    run = replace(policy.run, system="harmonicio/stream")
    scenario = replace(SCENARIO, systems=("harmonicio/stream",))
    folder = make_policy_run(tmp_path / "run", scenario, [replace(policy, run=run)])
    assert call(folder, "25/s") == 0
    said = capsys.readouterr().out
    assert "harmonicio/stream  4        4" in said
    assert "settings.harmonicio.pes: 4" in said
    assert "10 /s [10 /s .. 10 /s], 1 worker, 1 core" in said
    assert call(folder, "25/s", size="2kB") == 4
    with pytest.raises(UsageError, match="has no interval of a policy yet; go on with: bench run --resume"):
        call(make_policy_run(tmp_path / "none", scenario, []), "25/s")


@pytest.fixture
def day(tmp_path):
    """Return a load of an hour: low, high, low again."""
    path = tmp_path / "day.csv"
    path.write_text("time,rate\n0,1\n1200,4\n2400,1\n3600,0\n")
    return path


def test_policies_follow_a_load_on_the_cheapest_system(capsys, run, day):
    """Each installed one from the same start; the number for the highest rate never falls behind."""
    assert call(run, "100k/s", load=day, as_json=True, **ONE_POINT) == 0
    said = json.loads(capsys.readouterr().out)
    runs = {each["policy"]: each for each in said["policies"]}
    assert set(runs) == set(registry.names("policies"))
    fixed, ds2 = runs["fixed"], runs["ds2"]
    assert (fixed["score"]["under_target_s"], fixed["changes"]) == (0, [])
    assert ds2["score"]["instance_s"] < fixed["score"]["instance_s"]
    assert all(change["reason"] for each in runs.values() for change in each["changes"])


def test_the_table_of_policies_says_that_it_is_simulated(capsys, run, day):
    """With the true rate of a worker and the pause."""
    assert call(run, "100k/s", load=day, pause="5s", **ONE_POINT) == 0
    said = capsys.readouterr().out
    assert "Simulated: policies on python/kafka" in said
    assert "1 h of load, 100 k/s at most; a decision every 1 min, 5 s of pause after a change" in said


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"interval": "0s"}, "--interval: found 0 ms"),
        ({"interval": "2h"}, "--load: has 0 intervals of 2 h"),
        ({"interval": "1s"}, "has 3600 intervals of 1 s; allowed: 1 to 2000"),
        ({"interval": "1us"}, "has 3600000000 intervals of 1 µs; allowed: 1 to 2000"),
    ],
    ids=str,
)
def test_a_load_that_cannot_be_followed_is_refused(run, day, options, complaint):
    """In one line."""
    with pytest.raises(UsageError, match=complaint):
        advise(run, rate="1M/s", **{**LEFT_OUT, **ONE_POINT, **options, "load": day})


def test_a_load_needs_a_system_of_which_the_workers_are_known(tmp_path, day):
    """An upper bound says only how many are not enough."""
    scenario = QUICK.__class__("one", ("python/kafka",), Grid((MessageSize(100),), (Seconds(0),)))
    with open_run_folder(tmp_path / "run", scenario) as store:
        (cell,) = scenario.cells()
        store.save_result(cell, make_result(cell, "upper-bound"))
    with pytest.raises(UsageError, match="of no system it is known"):
        advise(tmp_path / "run", rate="1k/s", **{**LEFT_OUT, "load": day})


def test_policies_have_settings(capsys, run, day):
    """A policy that may use half of the time of the workers needs more of them."""
    runs = []
    for changes in ([], ["settings.ds2.utilization_target=50%"]):
        assert call(run, "100k/s", load=day, as_json=True, changes=changes, **ONE_POINT) == 0
        runs.append({each["policy"]: each for each in json.loads(capsys.readouterr().out)["policies"]})
    first, second = (each["ds2"]["score"]["most_instances"] for each in runs)
    assert second > first
    assert runs[0]["fixed"] == runs[1]["fixed"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("settings.ds3.warm_up_time=5s", "did you mean 'ds2'?"),
        ("settings.ds2.warm_up=5s", "did you mean 'warm_up_time'?"),
        ("setting.ds2.warm_up_time=5s", "did you mean 'settings'?"),
    ],
)
def test_a_wrong_setting_of_a_policy_is_refused(run, day, change, complaint):
    """With the nearest name."""
    with pytest.raises(UsageError) as mistake:
        advise(run, rate="100k/s", **{**LEFT_OUT, **ONE_POINT, "load": day, "changes": [change]})
    assert complaint in str(mistake.value)


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_load_and_workers_are_drawn_side_by_side(capsys, run, day, tmp_path, ending):
    """A column for each policy."""
    pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
    file = tmp_path / f"policies.{ending}"
    assert call(run, "100k/s", load=day, plot=file, **ONE_POINT) == 0
    assert str(file) in capsys.readouterr().err
    drawn = file.read_bytes()
    assert all(name.encode() in drawn for name in registry.names("policies")) or ending == "png"


def test_a_plot_of_another_kind_is_refused(run, day, tmp_path):
    """The line says which kinds there are."""
    pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
    with pytest.raises(UsageError, match=r"a plot is a \.png or a \.svg file"):
        call(run, "100k/s", load=day, plot=tmp_path / "policies.gif", **ONE_POINT)
