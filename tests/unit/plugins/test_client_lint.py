"""Each known mistake of a client is one line before anything is measured."""

import sys

import pytest
from scenario_files import read_scenario

from bench.config.site import Site
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.plugins import client_lint, registry
from bench.plugins.scenario_check import config_warnings
from frameworks.spark.site import SparkSite
from producers.kafka.site import KafkaSite


def scenario(tmp_path, *changes):
    path = tmp_path / "scenario.yaml"
    path.write_text("name: x\nsystems: [python/kafka]\ngrid: {message_size: [1 kB]}\n")
    return read_scenario(path, changes)


def told(tmp_path, *changes):
    return config_warnings(scenario(tmp_path, *changes), Site(), 2)


def test_fewer_partitions_than_cores_are_warned_of(tmp_path):
    """A map would show 2 of 80 cores; partitions that are left out follow the cores of the framework."""
    site = Site(sections={"spark": SparkSite("spark://f1:7077", cores=80), "kafka": KafkaSite("b1:9092")})
    asked = scenario(tmp_path, "systems=spark/kafka,python/kafka", "settings.kafka.partitions=2")
    (found,) = config_warnings(asked, site, 2)
    assert found.text == (
        "settings.kafka.partitions: spark/kafka reads with 80 tasks, but only 2 of them get a partition;"
        " the others are idle; give at least 80, or leave it out"
    )
    assert (
        config_warnings(scenario(tmp_path, "settings.kafka.partitions=1", "settings.python.processes=1"), site, 2) == []
    )
    assert config_warnings(scenario(tmp_path, "systems=spark/kafka,spark/tcp"), site, 2) == []


def test_fewer_partitions_than_workers_at_most_are_warned_of(tmp_path):
    """Workers that come and go need partitions for the most of them; bridges are as many as ever."""
    elastic = ["kind=elasticity", "elasticity={load: [{time: 60 s, rate: 1 /s}], policies: [fixed], most: 8}"]
    changes = ["settings.kafka.partitions=4", "systems=flink/kafka,harmonicio/kafka", *elastic]
    (found,) = told(tmp_path, *changes)
    assert "flink/kafka reads with 8 tasks, but only 4 of them get a partition" in found.text


def test_our_own_senders_have_no_mistake(tmp_path):
    """With the settings as they are."""
    assert told(tmp_path, "systems=python/kafka,spark/tcp,spark/files,capacity/memory") == []


def test_compression_of_compressible_messages_is_warned_of(tmp_path):
    """What travels is smaller than the size in the map."""
    (found,) = told(tmp_path, "settings.kafka.compression=lz4", "load.entropy=0.1")
    assert "smaller than the cell's size" in found.text
    assert not found.refused


def test_compression_of_random_messages_is_no_mistake(tmp_path):
    """Nothing shrinks."""
    assert told(tmp_path, "settings.kafka.compression=lz4", "load.entropy=0.75") == []


def test_a_limit_below_the_size_is_refused(tmp_path):
    """A limit below the message size would refuse every message."""
    (found,) = told(tmp_path, "settings.kafka.message_limit=999 B")
    assert found.refused
    assert "999 B is below the message size of 1000 B" in found.text


def test_acks_that_confirm_nothing_are_refused(tmp_path):
    """Nobody could say what was sent."""
    (found,) = told(tmp_path, "settings.kafka.acks=0")
    assert found.refused
    assert "no confirmations" in found.text


def test_kafka_python_without_crc32c_is_refused(monkeypatch):
    """It would move 8.5 MB/s at any size."""
    monkeypatch.setitem(sys.modules, "crc32c", None)
    with pytest.raises(UsageError, match="crc32c"):
        registry.make_source("kafka", {"kafka": {"client": "kafka-python"}}).unsupported_reason(
            Cell("python", "kafka", 100, 0.0), 0.5
        )


PUT = "def put(self, m):\n    try:\n        self.p.produce('t', m)\n    except BufferError:\n"
CODE = {
    "a blocking poll": "def send(self, m):\n    self.producer.poll(0.1)\n",
    "a blocking poll without a time-out": "def send(self, m):\n    self.producer.poll()\n",
    "a flush a message": "def send(self, m):\n    self.producer.produce('t', m)\n    self.producer.flush()\n",
    "a flush in a loop": (
        "def all(self, ms):\n    for m in ms:\n        self.p.produce('t', m)\n        self.p.flush()\n"
    ),
    "a full queue that is ignored": f"{PUT}        pass\n",
}


@pytest.mark.parametrize("code", CODE.values(), ids=CODE.keys())
def test_code_that_measures_something_else_is_found(code):
    """With the line where it stands."""
    (found,) = client_lint.in_code(code, "a.sender")
    assert found.text.startswith("a.sender:")


GOOD = {
    "poll(0)": "def send(self, m):\n    self.producer.poll(0)\n",
    "flush at the end": "def close(self):\n    self.producer.flush(5)\n",
    "a full queue told of": f"{PUT}        return 0\n",
}


@pytest.mark.parametrize("code", GOOD.values(), ids=GOOD.keys())
def test_code_that_is_right_is_let_pass(code):
    """Correct code gets no warning."""
    assert list(client_lint.in_code(code, "a.sender")) == []
