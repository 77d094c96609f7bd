"""A framework that is killed in a trial is a finding of that trial; it comes back, and the run goes on."""

import pytest
from killed_runs import check_death_is_a_finding, run_with_death

from bench.config.scenario import LoadSettings
from bench.config.site import Site
from bench.plugins.environments import environments
from bench.services.python_environments import missing_reason
from bench.storage.run_folder import read_results
from producers.kafka.site import KafkaSite

SIZES = (10_000, 20_000)


@pytest.mark.parametrize(
    ("system", "word", "named"),
    [
        ("command/tcp", "frameworks.command.example", False),
        pytest.param("bytewax/kafka", "frameworks.bytewax.worker", False, marks=pytest.mark.real),
        pytest.param("harmonicio/kafka", "frameworks.harmonicio.engine.cli", True, marks=pytest.mark.real),
        pytest.param("spark/kafka", "org.apache.spark.deploy.SparkSubmit", True, marks=pytest.mark.real),
        pytest.param(
            "flink/kafka",
            "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
            True,
            marks=[pytest.mark.real, pytest.mark.timeout(600)],
        ),
    ],
    ids=["command/tcp", "bytewax/kafka", "harmonicio/kafka", "spark/kafka", "flink/kafka"],
)
def test_a_killed_framework_is_a_finding_and_comes_back(system, word, named, tmp_path, env, request):
    """The trial says so, and its rate is asked for again; later trials are whole, and the next cell has its own.

    The victim's command line has a word, and names the run's folder where other tests keep such a process, too.
    """
    framework = system.partition("/")[0]
    if framework in environments() and (reason := missing_reason(environments()[framework], env.cache)) is not None:
        pytest.skip(reason)
    sections = {}
    if system.endswith("/kafka"):
        sections["kafka"] = KafkaSite(request.getfixturevalue("kafka").address)

    def is_victim(words):
        return word in words and (not named or any(str(tmp_path) in one for one in words))

    site, load = Site(shared_machine=True, sections=sections), LoadSettings(by="inline")
    folder = run_with_death(system, SIZES, is_victim, tmp_path, env, site=site, load=load)
    check_death_is_a_finding(folder, SIZES, ended="framework died", why="died")
    assert [result.remark for result in read_results(folder)] == [None, None]  # both verify every body
