"""Fixtures that many tests share: a real run environment, and real servers that start when a test needs them."""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import settings

from bench.config.site import Site
from bench.plugins.environment import RunEnvironment
from bench.services.embedded_server import EmbeddedServer
from bench.services.ports import free_ports
from bench.system.supervisor import Supervisor
from producers.kafka import server as kafka_server
from producers.kafka.server import KafkaBroker, start_kafka
from producers.pulsar import server as pulsar_server
from producers.pulsar.server import PulsarBroker, start_pulsar
from producers.pulsar.site import PulsarSite

sys.path.insert(0, str(Path(__file__).parent))  # for sample_runs and exporter
from spark_classes import ARCHIVE

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"  # servers live for seconds: C2 never pays off
os.environ.setdefault(
    "JAVA_TOOL_OPTIONS", f'{JAVA_OPTIONS} -XX:SharedArchiveFile="{ARCHIVE}"' if ARCHIVE.exists() else JAVA_OPTIONS
)

kafka_server.WARM_UP_S = pulsar_server.WARM_UP_S = 0.3  # warm enough for messages that are counted, not timed

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


@pytest.fixture
def ipv6_address() -> str:
    """An address of this machine, [::1]:port, at which nobody listens; a machine without IPv6 has none."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
            return f"[::1]:{server.getsockname()[1]}"
    except OSError as problem:
        pytest.skip(f"no IPv6 on this machine: {problem}")


@pytest.fixture(scope="session")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunEnvironment]:
    """The environment of a run with two cores; the resources that it keeps serve all tests."""
    folder, cache = tmp_path_factory.mktemp("environment"), Path.home() / ".cache" / "stream-bench"
    with RunEnvironment(
        Site(), Supervisor(folder / "running", folder / "logs"), folder / "data", cache, cores=2, note=logger.info
    ) as env:
        yield env


@pytest.fixture(scope="session")
def kafka(env: RunEnvironment) -> EmbeddedServer[str]:
    """The embedded Kafka that the Kafka source, with its own defaults, finds in the environment."""
    broker = KafkaBroker()
    return env.cached_resource(
        ("kafka", broker),
        lambda: start_kafka(env.supervisor, broker, cache=env.cache, data=env.data, note=env.note),
    )


@pytest.fixture(scope="session")
def pulsar(env: RunEnvironment) -> EmbeddedServer[PulsarSite]:
    """The embedded Pulsar that the Pulsar source, with its own defaults, finds in the environment."""
    broker = PulsarBroker()
    return env.cached_resource(
        ("pulsar", broker),
        lambda: start_pulsar(env.supervisor, broker, cache=env.cache, data=env.data, note=env.note),
    )


@pytest.fixture
def exporter_address() -> Iterator[str]:
    """The address of a node exporter (tests/exporter.py)."""
    from exporter import Exporter

    with ThreadingHTTPServer(("127.0.0.1", 0), Exporter) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def unused_address() -> str:
    """An address of loopback at which nobody listens."""
    return f"127.0.0.1:{free_ports(1)[0]}"
