"""A scenario that names a plugin which is not installed, or does not fit a site, is refused in one line."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from scenario_files import read_scenario

from bench.config.scenario import Grid, LoadSettings, Scenario
from bench.config.site import LoadHosts, Site
from bench.config.validation import apply_changes, parse_scenario
from bench.config.yaml_document import read_document
from bench.errors import UsageError
from bench.model.message_sizes import MessageSize
from bench.plugins.scenario_check import check_scenario, scenario_on_site
from producers.kafka.site import KafkaSite

GOOD = "name: good\nsystems: [spark/kafka]\ngrid:\n  message_size: [100 B]\n"
HOSTS = Site(load=LoadHosts("127.0.0.1:5557", 3), sections={"kafka": KafkaSite("b1:9092")})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"{GOOD}load:\n  by: Locust\n",
            ":6: load.by: found 'Locust'; allowed: inline, locust; did you mean 'locust'?",
        ),
        (f"{GOOD}search:\n  strategy: bisecton\n", ":6: search.strategy: found 'bisecton'; allowed: bisection, "),
        (
            f"{GOOD}settings:\n  kafak: {{acks: 1}}\n",
            ":6: settings.kafak: found 'kafak'; allowed: bytewax, capacity, command, files, ",
        ),
        (
            GOOD.replace("spark/", "sprak/"),
            ":2: systems[0]: found 'sprak/kafka'; allowed: one of the installed frameworks",
        ),
        (GOOD.replace("kafka", "kafak"), ":2: systems[0]: found 'spark/kafak'; allowed: one of the installed sources"),
    ],
    ids=["load generator", "strategy", "settings", "framework", "source"],
)
def test_a_plugin_that_is_not_installed_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    """The line names those that are, and the nearest one."""
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        check_scenario(read_document(path), read_scenario(path))
    assert str(caught.value).startswith(f"{path}{message}")
    assert "did you mean" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_of_a_policy_may_stay_where_another_one_is_chosen(request: pytest.FixtureRequest) -> None:
    """As settings of a framework that the scenario does not name; the shipped scenario can be run with one policy."""
    path = request.config.rootpath / "scenarios" / "elasticity.yaml"
    document = apply_changes(read_document(path), ["elasticity.policies=[fixed]"])
    check_scenario(document, parse_scenario(document))
    document = apply_changes(document, ["settings.ds2={warm_up: 5 s}"])
    with pytest.raises(UsageError, match="did you mean 'warm_up_time'"):
        check_scenario(document, parse_scenario(document))


def test_settings_of_a_policy_that_contradict_each_other_are_refused_before_a_run(
    request: pytest.FixtureRequest,
) -> None:
    """And not when the turn of the policy comes."""
    document = read_document(request.config.rootpath / "scenarios" / "elasticity.yaml")
    document = apply_changes(document, ["settings.threshold={below: 90 %}"])
    with pytest.raises(UsageError, match="threshold"):
        check_scenario(document, parse_scenario(document))


def test_a_scenario_has_the_workers_of_the_sites_load_hosts() -> None:
    """Its own count is of this machine; a site without load hosts changes nothing."""
    scenario = Scenario("x", ("python/kafka",), Grid((MessageSize(100),)))
    assert scenario_on_site(scenario, HOSTS).load.workers == 3
    assert scenario_on_site(scenario, Site()) == scenario


def test_a_load_generator_without_workers_is_refused_on_load_hosts() -> None:
    """It is one thread of the harness."""
    scenario = Scenario("x", ("python/tcp",), Grid((MessageSize(100),)))
    with pytest.raises(UsageError, match=r"one thread of this machine; leave load\.by out"):
        scenario_on_site(replace(scenario, load=LoadSettings(by="inline")), HOSTS)
