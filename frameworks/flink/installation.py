"""The Flink that `bench install flink` makes: a Python environment with Flink itself in it, and a connector's jar."""

from collections.abc import Callable
from pathlib import Path

from bench.services.maven_jars import download_jars
from bench.services.python_environments import PythonEnvironment, interpreter

ENVIRONMENT = PythonEnvironment("flink", Path(__file__).with_name("requirements.lock"), 845, ("3.11", "3.12"))
JARS_LOCK = Path(__file__).with_name("jars.lock")
CONNECTOR_JARS = "flink-kafka"


def flink_home(cache: Path) -> Path:
    """Return the folder of Flink's programs and jars. Raises UsageError where Flink is not installed."""
    environment = interpreter(ENVIRONMENT, cache).parents[1]
    (home,) = environment.glob("lib/python3*/site-packages/pyflink")
    return home


def job_jars(source: str, cache: Path, note: Callable[[str], None]) -> tuple[Path, ...]:
    """Return the jars that a job brings to its cluster: the runner of Python functions, and the connector to Kafka.

    Files and sockets are read by what a cluster has.

    Raises:
        UsageError: Flink, PySpark or Java is missing.
        ServiceError: the connector cannot be had.
    """
    runner = tuple(flink_home(cache).glob("opt/flink-python-*.jar"))
    if source != "kafka":
        return runner
    return (*runner, *sorted(download_jars(CONNECTOR_JARS, cache, note, lock=JARS_LOCK).glob("*.jar")))
