"""What tests of rooms stand on: real ground, and a real Kafka that is started when the first test asks for it."""

import logging
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from bench.config.site import Site
from bench.plugins.environment import RunEnvironment
from bench.system.supervisor import Supervisor
from producers.kafka.server import Broker, KafkaServer
from producers.pulsar.server import Broker as PulsarBroker
from producers.pulsar.server import PulsarServer

sys.path.insert(0, str(Path(__file__).parent))  # for sample_runs

logger = logging.getLogger(__name__)

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile(
    "hunt", max_examples=2000, deadline=None
)  # pytest --hypothesis-profile=hunt: others each time
settings.load_profile("same")  # what lands is judged by what it is, not by luck


def pytest_configure(config: pytest.Config) -> None:
    """Warnings are errors, but for what kafka-python's import does on Python 3.11."""
    config.addinivalue_line("filterwarnings", "ignore:(read|open)_text is deprecated:DeprecationWarning")
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell that runs the tests in its background ignores it, for us too


@pytest.fixture(scope="session")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunEnvironment]:
    """Two cores on this machine; what is kept on it serves all tests."""
    folder, cache = tmp_path_factory.mktemp("ground"), Path.home() / ".cache" / "stream-bench"
    with RunEnvironment(
        Site(), Supervisor(folder / "running", folder / "logs"), folder / "data", cache, cores=2, note=logger.info
    ) as env:
        yield env


@pytest.fixture(scope="session")
def kafka(env: RunEnvironment) -> KafkaServer:
    """The embedded Kafka that the Kafka source, with its own defaults, finds on the ground."""
    broker = Broker()
    return env.cached_resource(
        ("kafka", broker),
        lambda: KafkaServer.deployed(env.supervisor, broker, cache=env.cache, data=env.data, note=env.note),
    )


@pytest.fixture(scope="session")
def pulsar(env: RunEnvironment) -> PulsarServer:
    """The embedded Pulsar that the Pulsar source, with its own defaults, finds on the ground."""
    broker = PulsarBroker()
    return env.cached_resource(
        ("pulsar", broker),
        lambda: PulsarServer.deployed(env.supervisor, broker, cache=env.cache, data=env.data, note=env.note),
    )
