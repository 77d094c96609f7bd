"""A broker that is killed in the middle of a trial is a finding of that trial; it comes back, and the run goes on."""

import pytest
from killed_runs import check_death_is_a_finding, run_with_death

pytestmark = pytest.mark.real

MAINS = {"kafka": "kafka.Kafka", "pulsar": "org.apache.pulsar.PulsarStandaloneStarter"}


@pytest.mark.parametrize(
    ("system", "sizes"),
    [
        ("python/kafka", (10_000, 20_000)),
        ("python/pulsar", (10_000, 20_000)),
        ("spark/kafka", (10_000,)),
        ("spark/pulsar", (10_000,)),
    ],
)
def test_a_killed_broker_is_a_finding_and_comes_back(system, sizes, tmp_path, env):
    """The trial says so, and its rate is asked for again; later trials of the cell are whole, and the next cell has
    its own.
    """
    framework, _, source = system.partition("/")

    def is_broker(words):
        return MAINS[source] in words and any(str(tmp_path) in word for word in words)

    settings = {"spark": {"batch_interval": "500 ms"}} if framework == "spark" else {}
    folder = run_with_death(system, sizes, is_broker, tmp_path, env, settings=settings)
    check_death_is_a_finding(folder, sizes, ended="source died", why="source died")
