"""The Python data source gives Spark every message of a Pulsar topic once, over restarts and kills too."""

import json
import sys
import time

import pulsar as client
import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructType

from frameworks.spark.pulsarsource import PulsarDataSource
from frameworks.spark.pulsarsource.options import PulsarSourceOptions
from frameworks.spark.pulsarsource.position import EARLIEST, Position
from frameworks.spark.pulsarsource.reading import Range, arrow_schema, batches
from frameworks.spark.pulsarsource.source import PulsarStreamReader
from producers.pulsar.admin import Admin

DEADLINE = 140.0
"""Seconds of each of the two starts; a busy machine was seen to take 50 for both."""


@pytest.fixture
def topic(pulsar):
    """A new topic of two partitions, and a function that writes numbers to it."""
    admin, name = Admin(pulsar.address), f"source-{time.monotonic_ns()}"
    admin.make_topic(name, 2)
    connection = client.Client(pulsar.address.service_url, logger=client.ConsoleLogger(client.LoggerLevel.Error))
    parts = [
        connection.create_producer(
            f"persistent://public/default/{name}-partition-{part}",
            batching_enabled=part == 0,
            max_pending_messages=100_000,
        )
        for part in (0, 1)
    ]

    def write(first, count):
        for number in range(first, first + count):
            parts[number % 2].send_async(str(number).encode(), None, partition_key=f"k{number % 3}")
        for part in parts:
            part.flush()

    yield f"persistent://public/default/{name}", write
    connection.shutdown()
    admin.delete_topic(name)


@pytest.fixture
def reader(pulsar, topic):
    """A stream reader of the topic's values, from its beginning."""
    schema = StructType().add("value", "binary")
    options = {
        "serviceUrl": pulsar.address.service_url,
        "topic": topic[0],
        "startingPositions": "earliest",
        "maxBatchRows": "7",
    }
    reader = PulsarStreamReader(schema, options)
    yield reader
    reader.stop()


def read(reader, start, end):
    """The numbers between two offsets, and the sizes of the batches that brought them."""
    found = [batch for span in reader.partitions(start, end) for batch in reader.read(span)]
    return sorted(int(value) for batch in found for value in batch.column(0).to_pylist()), [
        len(batch) for batch in found
    ]


@pytest.mark.real
def test_what_lies_between_two_offsets_is_read_once_and_again(reader, topic):
    """In bounded batches; a replay gives the same, whatever came since."""
    _, write = topic
    start = reader.initialOffset()
    write(0, 40)
    middle = reader.latestOffset(start)
    write(40, 25)
    end = reader.latestOffset(middle)
    numbers, sizes = read(reader, start, middle)
    assert numbers == list(range(40))
    assert max(sizes) == 7
    assert read(reader, middle, end)[0] == list(range(40, 65))
    assert read(reader, start, middle)[0] == list(range(40))
    assert reader.partitions(end, reader.latestOffset(end)) == []


@pytest.mark.real
def test_an_offset_in_the_middle_of_a_batch_of_the_producers_is_exact(reader, topic):
    """What the producer sent as one entry may be read in two parts."""
    topic[1](0, 40)
    start, end = reader.initialOffset(), reader.latestOffset()
    part = next(iter(end))
    last = Position.parse(end[part])
    cut = {**end, part: str(last._replace(message=7))}
    assert last.message > 7
    first, rest = read(reader, start, cut)[0], read(reader, cut, end)[0]
    assert sorted(first + rest) == list(range(40))
    assert len(rest) == last.message - 7


@pytest.mark.real
def test_a_message_that_is_gone_fails_the_batch(pulsar, topic):
    """After a time the task says so; it does not wait for ever, nor skip."""
    topic[1](0, 4)
    options = PulsarSourceOptions.of(
        {"serviceUrl": pulsar.address.service_url, "topic": topic[0], "readTimeout": "0.5"}
    )
    span = Range(f"{topic[0]}-partition-1", str(EARLIEST), str(Position(10**9, 5, 0)))
    with pytest.raises(RuntimeError, match="was it deleted"):
        list(batches(options, span, arrow_schema(StructType().add("value", "binary"))))


@pytest.mark.real
def test_messages_that_were_deleted_up_to_a_batchs_end_fail_it(pulsar, topic, reader):
    """Although newer ones are there: nothing is skipped in silence."""
    name, write = topic
    part = f"{name}-partition-1"
    start = reader.initialOffset()
    write(0, 10)
    end = reader.latestOffset(start)
    for _ in range(3):  # a ledger that is closed and behind every subscription is deleted
        Admin(pulsar.address)._request("PUT", f"{part.replace('://', '/')}/unload")
        write(100, 10)
    reader.commit(reader.latestOffset(end))
    gone = Range(part, start[part], end[part])
    deadline = time.monotonic() + DEADLINE
    while _readable(reader, gone):
        assert time.monotonic() < deadline, "Pulsar has not deleted what every subscription has behind it"
        Admin(pulsar.address)._request("PUT", f"{part.replace('://', '/')}/unload")
        write(100, 10)
        reader.commit(reader.latestOffset(end))
        time.sleep(0.5)
    with pytest.raises(RuntimeError, match="was it deleted"):
        list(reader.read(gone))


def _readable(reader, span):
    """Return whether the messages of the span are still there."""
    try:
        return bool(list(reader.read(span)))
    except RuntimeError:
        return False


@pytest.mark.real
def test_a_query_that_is_killed_goes_on_from_its_checkpoint_exactly(pulsar, topic, env, tmp_path, request):
    """Killed with -9 in the middle, started again while messages come: each is in one batch, once, and in its place."""
    name, write = topic
    program = str(request.config.rootpath / "tests" / "integration" / "programs" / "pulsar_query.py")
    command = [sys.executable, program, pulsar.address.service_url, name, str(tmp_path), "subscription=restarted"]
    began = time.time() - 1
    write(0, 3000)
    query = env.supervisor.start(command, name="pulsar-query", role="framework", cwd=request.config.rootpath)
    written = 3000
    deadline = time.monotonic() + DEADLINE
    while len(saved(tmp_path)) < 4:
        assert time.monotonic() < deadline, query.log.read_text()[-2000:]
        write(written, 10)
        written += 10
        time.sleep(0.05)
    query.kill()
    write(written, 500)
    written += 500
    query = env.supervisor.start(command, name="pulsar-query", role="framework", cwd=request.config.rootpath)
    deadline = time.monotonic() + DEADLINE
    while sum(map(len, saved(tmp_path).values())) < written:
        assert time.monotonic() < deadline, query.log.read_text()[-2000:]
        time.sleep(0.1)
    (tmp_path / "stop").touch()
    assert query.wait_end(30) == 0, query.log.read_text()[-2000:]
    rows = [row for batch in saved(tmp_path).values() for row in batch]
    assert sorted(row[0] for row in rows) == list(range(written))
    assert all(key == f"k{number % 3}" for number, key, *_ in rows)
    assert len({position for number, _, position, *_ in rows if number % 2}) == written // 2
    assert all(part == f"{name}-partition-{number % 2}" for number, _, _, part, _ in rows)
    assert all(began <= published <= time.time() for *_, published in rows)


def saved(folder):
    """The rows of each batch that was finished."""
    return {path.name: json.loads(path.read_text()) for path in folder.glob("batch-*.json")}


def test_a_position_is_its_text():
    """A checkpoint keeps it; what is none is told."""
    assert Position.parse(str(Position(12, 0, -1))) == Position(12, 0, -1)
    with pytest.raises(ValueError, match=r"ledger:entry:message.*'12:x'"):
        Position.parse("12:x")


@pytest.mark.parametrize(
    ("here", "end", "ends", "beyond"),
    [
        ((3, 4, -1), (3, 4, -1), True, False),
        ((3, 4, 1), (3, 4, 2), False, False),
        ((3, 4, 2), (3, 4, 2), True, False),
        ((3, 4, 3), (3, 4, 2), True, True),
        ((3, 4, 3), (3, 4, -1), False, False),
        ((3, 5, -1), (3, 4, -1), False, True),
        ((3, 9, 0), (4, -1, -1), False, False),
        ((4, 0, 0), (4, -1, -1), False, True),
    ],
)
def test_a_position_knows_where_a_batch_ends(here, end, ends, beyond):
    """Also where the end does not say which message of its entry it is, or lies before the first one of a ledger."""
    assert (Position(*here).ends(Position(*end)), Position(*here).beyond(Position(*end))) == (ends, beyond)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": "t"}, "needs the option 'serviceUrl'"),
        ({"serviceUrl": "u", "topic": "t", "speed": "1"}, "unknown option 'speed'"),
        ({"serviceUrl": "u", "topic": "t", "maxBatchRows": "many"}, "'maxBatchRows'.* is a number, not 'many'"),
        ({"serviceUrl": "u", "topic": "t", "maxBatchBytes": "0"}, "'maxBatchBytes'.* must be above 0, not '0'"),
        ({"serviceUrl": "u", "topic": "t", "readTimeout": "-1"}, "'readTimeout'.* must be above 0, not '-1'"),
    ],
)
def test_a_wrong_option_is_told(given, said):
    """In a line that names it."""
    with pytest.raises(ValueError, match=said):
        PulsarSourceOptions.of(given)


def test_options_are_found_in_any_case():
    """Spark does not tell cases apart."""
    assert PulsarSourceOptions.of({"SERVICEURL": "u", "topic": "t", "maxbatchrows": "3"}).maxBatchRows == 3


def test_a_column_that_there_is_not_is_told():
    """The error lists the columns that exist."""
    with pytest.raises(ValueError, match=r"no column vlaue string; there are value binary, key string"):
        arrow_schema(StructType().add("vlaue", StringType()))


def test_the_schema_is_the_value_alone_unless_more_is_asked_for():
    """And its Arrow form is what Spark expects."""
    assert PulsarDataSource({}).schema() == "value binary"
    assert arrow_schema(StructType().add("value", "binary")).field(0).type == pa.binary()
