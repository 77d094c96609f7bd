"""Options of Flink's cluster, of a job, and of what reads a source."""

from pathlib import Path

import pytest
import yaml

from bench.errors import UsageError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.protocols import Endpoint
from bench.units import Seconds
from frameworks.flink.cluster import java_options
from frameworks.flink.conf import (
    FlinkSettings,
    Ports,
    cluster_conf,
    config_text,
    job_conf,
    kafka_options,
    local_conf,
    max_messages,
    source_options,
)
from frameworks.flink.rest import deepest_cause

ENDPOINT = Endpoint("kafka", "127.0.0.1:9092", "topic-1", 2)


def conf_of(settings: FlinkSettings, cell: Cell) -> dict[str, str]:
    """Return the options of a cell's job with two subtasks."""
    return job_conf(settings, cell, parallelism=2, python="/python")


@pytest.mark.parametrize(
    ("size", "cost", "most"),
    [(100, 0.0, 20_000), (10_000, 0.0, 800), (10_000_000, 0.0, 1), (100, 0.01, 20), (100, 1.0, 1)],
    ids=["many", "8 MB", "one large", "0.2 s", "one dear"],
)
def test_python_gets_batches_of_bounded_size_and_cost(size: int, cost: float, most: int) -> None:
    """At most 20,000 messages, 8 MB and 0.2 s of CPU time; one message at least."""
    conf = conf_of(FlinkSettings(), Cell("flink", "kafka", size, cost))
    assert max_messages(FlinkSettings(), Cell("flink", "kafka", size, cost)) == most
    assert conf["python.fn-execution.bundle.size"] == conf["python.fn-execution.arrow.batch.size"] == str(most)


def test_a_job_has_checkpoints_and_never_starts_again() -> None:
    """The interval is the scenario's; a job that began again after a death would hide it."""
    conf = conf_of(FlinkSettings(checkpoint_interval=Seconds(2.5)), Cell("flink", "kafka", 100, 0.0))
    assert conf["execution.checkpointing.interval"] == "2500 ms"
    assert conf["restart-strategy.type"] == "disable"
    assert conf["python.execution-mode"] == "process"
    assert "execution.attached" not in conf  # the client's, in job.py


def test_a_cluster_has_the_adaptive_scheduler_only_where_workers_come_and_go() -> None:
    """Maps are measured with the scheduler that Flink ships."""
    assert cluster_conf(FlinkSettings(), 8, elastic=True)["jobmanager.scheduler"] == "adaptive"
    assert "jobmanager.scheduler" not in cluster_conf(FlinkSettings(), 2)


def test_the_last_word_is_the_scenarios() -> None:
    """Its own options replace those of the plugin, of the cluster, the job and the connector."""
    settings = FlinkSettings(
        conf={"pipeline.object-reuse": False, "jobmanager.memory.process.size": "2g"},
        options={"properties.max.poll.records": 7},
    )
    assert conf_of(settings, Cell("flink", "kafka", 100, 0.0))["pipeline.object-reuse"] == "false"
    assert cluster_conf(settings, 2)["jobmanager.memory.process.size"] == "2g"
    assert kafka_options(settings, ENDPOINT, 20_000)["properties.max.poll.records"] == "7"


def test_a_message_of_ten_megabytes_fits_into_a_fetch() -> None:
    """A partition may give 16 MiB at once, and nothing of the topic is left out."""
    options = kafka_options(FlinkSettings(), ENDPOINT, 1)
    assert int(options["properties.max.partition.fetch.bytes"]) > 10**7
    assert (options["scan.startup.mode"], options["topic"]) == ("earliest-offset", "topic-1")


def test_a_folder_is_looked_at_as_often_as_a_user_wants() -> None:
    """Twice a second where the settings do not say."""
    endpoint, settings = Endpoint("files", "/data/complete"), FlinkSettings(options={"source.monitor-interval": "2 s"})
    options = source_options(FlinkSettings(), endpoint, 1)
    assert options == {"connector": "filesystem", "path": "file:///data/complete", "source.monitor-interval": "500 ms"}
    assert source_options(settings, endpoint, 1)["source.monitor-interval"] == "2 s"


def test_every_sender_of_a_socket_is_read() -> None:
    """The addresses of all senders are named."""
    options = source_options(FlinkSettings(), Endpoint("tcp", "127.0.0.1:9998,127.0.0.1:9999", parts=2), 1)
    assert options == {"connector": "socket", "addresses": "127.0.0.1:9998,127.0.0.1:9999"}


def test_a_secured_kafka_lets_flink_in(tmp_path: Path) -> None:
    """The connector's client has its login module under a name of its own."""
    (tmp_path / "password").write_text("secret\n")
    (tmp_path / "ca.crt").write_text("CERTIFICATE\n")
    client = {"user": "bench", "password_file": str(tmp_path / "password"), "ca_file": str(tmp_path / "ca.crt")}
    options = kafka_options(FlinkSettings(), Endpoint("kafka", "h:1", "t", client=client), 1)
    assert options["properties.security.protocol"] == "SASL_SSL"
    assert options["properties.sasl.jaas.config"].startswith("org.apache.flink.kafka.shaded.")


def test_a_cluster_of_ours_listens_on_loopback_only(tmp_path: Path) -> None:
    """Every address that its two processes bind is one of loopback."""
    conf = local_conf(Ports(rest=1, rpc=2), tmp_path)
    bound = [value for key, value in conf.items() if key.endswith(("host", "address"))]
    assert len(bound) == 6
    assert set(bound) == {"127.0.0.1"}


def test_the_configuration_is_yaml(tmp_path: Path) -> None:
    """Whatever the values contain, each is read back as the text that it is."""
    conf = {**local_conf(Ports(rest=1, rpc=2), tmp_path), "odd": 'a "b": #c'}
    assert yaml.safe_load(config_text(conf)) == conf


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (
            "env:\n  java:\n    opts:\n      all: --add-opens=a=b --add-exports=c=d\n",
            "--add-opens=a=b --add-exports=c=d",
        ),
        ("env: {log: {max: 10}}\n", ""),
        ("", ""),
    ],
    ids=["there", "others", "empty"],
)
def test_flinks_own_java_options_are_taken_over(text: str, options: str) -> None:
    """They are what its config.yaml has for all JVMs; nothing where it has none."""
    assert java_options(text) == options


def test_the_deepest_cause_is_told() -> None:
    """Of a Java stack trace the last cause; without one its first line."""
    trace = "org.a.JobException: stopped\n\tat x\nCaused by: org.b.KafkaException: no broker\n\tat y\n"
    assert deepest_cause(trace) == "org.b.KafkaException: no broker"
    assert deepest_cause("org.a.JobException: stopped\n\tat x\n") == "org.a.JobException: stopped"
    assert deepest_cause("") == ""


@pytest.mark.parametrize(
    ("source", "said"),
    [("kafka", None), ("files", None), ("tcp", None), ("pulsar", "Flink 1.18"), ("memory", "kafka here, not memory")],
    ids=["kafka", "files", "tcp", "pulsar", "memory"],
)
def test_what_flink_cannot_read_is_refused_with_the_reason(source: str, said: str | None) -> None:
    """Kafka, files and a socket are read; the connector to Pulsar is too old."""
    reason = registry.make_framework("flink", {}).unsupported_reason(Cell("flink", source, 100, 0.0), source)
    assert reason is None if said is None else said in (reason or "")


@pytest.mark.parametrize(("size", "refused"), [(2_000_000, False), (2_000_001, True)], ids=["2 MB", "more"])
def test_large_messages_from_a_socket_are_refused(size: int, *, refused: bool) -> None:
    """Flink's reader of sockets would take seconds for each; files of that size are read."""
    framework = registry.make_framework("flink", {})
    reason = framework.unsupported_reason(Cell("flink", "tcp", size, 0.0), "tcp")
    assert ("above 2 MB" in (reason or "")) == refused
    assert framework.unsupported_reason(Cell("flink", "files", size, 0.0), "files") is None


def test_options_of_a_connector_are_refused_where_there_is_none() -> None:
    """They would change nothing, in silence."""
    framework = registry.make_framework("flink", {"flink": {"options": {"properties.max.poll.records": 7}}})
    reason = framework.unsupported_reason(Cell("flink", "tcp", 100, 0.0), "tcp")
    assert "settings.flink.options" in (reason or "")


@pytest.mark.parametrize(
    ("mode", "source", "options", "named"),
    [
        ("datastream", "kafka", ["properties.fetch.min.bytes", "scan.parallelism", "scan.bounded.mode"], "scan.para"),
        ("datastream", "kafka", ["properties.fetch.min.bytes"], None),
        ("datastream", "files", ["source.monitor-interval", "source.path.regex-pattern"], "source.path.regex-pattern"),
        ("datastream", "files", ["path", "source.monitor-interval"], None),
        ("datastream", "tcp", [], None),
        ("table", "kafka", ["scan.parallelism"], None),
    ],
    ids=["kafka", "kafka's client", "files", "files taken", "tcp", "table"],
)
def test_an_option_that_a_datastream_would_drop_is_refused(
    mode: str, source: str, options: list[str], named: str | None
) -> None:
    """The reason names the first one; the connectors of the Table API say by themselves what they do not know."""
    framework = registry.make_framework("flink", {"flink": {"mode": mode, "options": dict.fromkeys(options, "1 s")}})
    reason = framework.unsupported_reason(Cell("flink", source, 100, 0.0), source)
    assert reason is None if named is None else named in (reason or "")


@pytest.mark.parametrize(
    ("settings", "key"),
    [({"mode": "sql"}, "mode"), ({"cores": 0}, "cores"), ({"task_memory": "lots"}, "task_memory")],
    ids=["mode", "cores", "memory"],
)
def test_a_wrong_setting_is_told(settings: dict[str, object], key: str) -> None:
    """It names the setting."""
    with pytest.raises(UsageError, match=key):
        registry.make_framework("flink", {"flink": settings})
