"""Spark reads real sources exactly, in a session that outlives its cells."""

import itertools
import json
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest

from bench.errors import ProcessDiedError, UsageError
from bench.model import message_codec
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.protocols import Endpoint
from bench.units import Seconds
from bench.workload.delivery_counts import DeliveryCounts
from bench.workload.load_spec import LoadSpec
from bench.workload.processing import MessageProcessor
from frameworks.spark.commands import first_line
from frameworks.spark.conf import SparkSettings, block_interval, query_conf, reader_options, session_conf
from frameworks.spark.site import SparkSite
from frameworks.spark.tasks import merge_rows, messages_at_once, on_arrow, on_lines
from tests.cpu_cost import MIN_SHARE, assert_spent

DEADLINE = 120.0
ENTROPY = 0.75
SMALL, LARGE = (100, 5000), (1_000_000, 20)
SYSTEMS = {"kafka": {}, "pulsar": {}, "files": {}, "tcp by Structured Streaming": {"tcp": "socket"}, "tcp": {}}


@contextmanager
def reading(env, source_name, size, settings=None):
    """A source, a load that writes to it, and Spark reading it: (endpoint, load, framework)."""
    cell = Cell("spark", source_name, size, 0.0)
    source = registry.make_source(source_name, {})
    with ExitStack() as opened:
        opened.callback(source.close)
        endpoint = source.open(cell, env)
        load = opened.enter_context(closing(registry.load_generator_plugin("inline").open(endpoint, env, 1)))
        framework = registry.make_framework("spark", {"spark": settings or {}})
        running = framework.open(cell, endpoint, MessageProcessor(size, ENTROPY), env)
        yield endpoint, load, opened.enter_context(closing(running))


def send(load, run, size, count, cost=0.0):
    """Have so many messages sent within two seconds."""
    load.start(
        LoadSpec(run, count / 2, time.monotonic() + 0.05, 2.0, message_bytes=size, cpu_seconds=cost, entropy=ENTROPY)
    )


def reported(framework, count):
    """The reports of a framework once it has worked on so many messages."""
    reports, done, deadline = [], 0, time.monotonic() + DEADLINE
    while done < count:
        assert time.monotonic() < deadline, f"{done} of {count} messages were processed"
        reports += framework.poll()
        done = sum(report.count + report.corrupted for report in reports)
        time.sleep(0.02)
    return reports


def processed_counts(framework, count):
    """Return the delivery counts once the framework has processed so many messages."""
    counts = DeliveryCounts()
    for report in reported(framework, count):
        counts.add(report)
    return counts


def spark_child(framework):
    """The process of the session that serves the cell; sessions of other cells may stand beside it."""
    return framework._session._child


def _burns(process):
    """Return whether a Python worker uses a core; False for a process that has just ended."""
    try:
        return "python" in process.name() and process.cpu_percent(0.1) > 30
    except psutil.Error:
        return False


def jvm_of(child):
    """Spark's JVM."""
    return next(process for pid in child.members() if "java" in (process := psutil.Process(pid)).name())


@pytest.mark.real
def test_the_cost_is_burnt(env):
    """At least what was asked for, and hardly more."""
    runs = itertools.count(1)

    def spend():
        send(load, next(runs), 100, 20, cost=0.05)
        counts = processed_counts(framework, 20)
        assert counts.cpu_requested_s == pytest.approx(1.0)
        return counts.cpu_used_s, counts.cpu_requested_s

    with reading(env, "files", 100) as (_, load, framework):
        assert_spent(spend, least=MIN_SHARE)


@pytest.mark.real
@pytest.mark.parametrize("deleted", [False, True], ids=["kept", "deleted"])
def test_files_that_were_read_are_deleted_in_the_trial(env, deleted):
    """Each message counts once; Spark deletes the files of a batch when a later one is done, unless asked not to."""
    settings, size = {} if deleted else {"clean": "between trials"}, 1000
    with reading(env, "files", size, settings) as (endpoint, load, framework):
        for run in (1, 2, 3):
            send(load, run, size, 40)
            assert processed_counts(framework, 40).reconcile({0: 40}) == (0, 0)
        deadline, left = time.monotonic() + DEADLINE, 120
        while deleted and left > 80:
            assert time.monotonic() < deadline, "no file was deleted"
            left = len(list(Path(endpoint.address).iterdir()))
            time.sleep(0.02)
        assert deleted or len(list(Path(endpoint.address).iterdir())) == 120


@pytest.mark.real
def test_the_list_of_files_is_not_written_again_every_tenth_batch(env):
    """Each batch writes its own files only, so that a long stream is as fast as a short one."""
    with reading(env, "files", 100, {"batch_interval": "200 ms"}) as (_, load, framework):
        batches, deadline = [], time.monotonic() + DEADLINE
        for run in itertools.count(1):
            send(load, run, 100, 40)
            processed_counts(framework, 40)
            batches = [path.suffix for path in (framework._checkpoint / "sources" / "0").glob("[0-9]*")]
            if len(batches) >= 12:
                break
            assert time.monotonic() < deadline, f"{len(batches)} batches"
    assert set(batches) == {""}


@pytest.mark.real
def test_a_batch_that_lasts_for_ever_does_not_keep_a_cell_open(env):
    """Close gives up what is under way, and the session serves the next cell."""
    with reading(env, "files", 100) as (_, load, framework):
        send(load, 1, 100, 8, cost=100.0)
        first = spark_child(framework).pid
        busy = psutil.Process(first)
        deadline = time.monotonic() + DEADLINE
        while not any(_burns(child) for child in busy.children(recursive=True)):
            assert time.monotonic() < deadline, "no worker burns"
    with reading(env, "files", 100) as (_, load, framework):
        send(load, 2, 100, 8)
        assert processed_counts(framework, 8).reconcile({0: 8}) == (0, 0)
        assert spark_child(framework).pid == first


@pytest.mark.real
def test_a_flipped_and_a_short_message_are_counted(env, tmp_path):
    """They are corrupted; their neighbours are not."""
    with reading(env, "files", 100) as (endpoint, _, framework):
        whole = written(100, 4)
        for number, text in enumerate([whole[0], whole[1][:-1], whole[2][:-1] + b"\x01", whole[3]]):
            (tmp_path / "part").write_bytes(text)
            (tmp_path / "part").rename(f"{endpoint.address}/{number}")
        counts = processed_counts(framework, 4)
    assert (counts.count, counts.corrupted) == (2, 2)


@pytest.mark.real
def test_a_killed_jvm_is_told_and_replaced(env):
    """Polling raises ProcessDiedError; the next cell gets a new session."""
    with reading(env, "files", 100) as (_, _, framework):
        first = spark_child(framework)
        jvm_of(first).kill()
        with pytest.raises(ProcessDiedError, match="JVM"):
            processed_counts(framework, 1)
    with reading(env, "files", 100) as (_, load, framework):
        send(load, 1, 100, 50)
        assert processed_counts(framework, 50).reconcile({0: 50}) == (0, 0)
        assert spark_child(framework).pid != first.pid


@pytest.mark.real
@pytest.mark.parametrize("source", ["files", "tcp"])
def test_a_session_serves_many_cells_and_keeps_no_connection_of_an_earlier_one(env, source):
    """Each counts its own messages. A soak test found one more connection for each query, in Python and in the JVM."""
    open_files, sessions = [], set()
    for run in range(1, 10):
        with reading(env, source, 100) as (_, load, framework):
            send(load, run, 100, 50)
            assert processed_counts(framework, 50).reconcile({0: 50}) == (0, 0)
            child = spark_child(framework)
            sessions.add(child.pid)
            open_files.append((psutil.Process(child.pid).num_fds(), jvm_of(child).num_fds()))
    assert len(sessions) == 1
    for counts in zip(*open_files[1:], strict=True):
        assert len(set(itertools.accumulate(counts, max))) <= 4, open_files  # a leak is a new maximum with each query
        steps = [after - before for before, after in itertools.pairwise(counts)]
        assert sum(steps) - max(steps) <= 3, open_files  # 5 and 10 came at once; a leak has 6, one for each other query


@pytest.mark.real
@pytest.mark.parametrize(("size", "count"), [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_message_is_worked_on_once(env, kafka, pulsar, system, size, count):
    """What was sent is what was processed, in order where the source has one."""
    with reading(env, system.split()[0], size, SYSTEMS[system]) as (endpoint, load, framework):
        send(load, 1, size, count)
        counts = processed_counts(framework, count)
    assert counts.reconcile({0: count}) == (0, 0)
    assert (counts.corrupted, counts.out_of_order if endpoint.ordered else 0) == (0, 0)


@pytest.mark.real
@pytest.mark.parametrize("system", ["kafka", "tcp"], ids=["Structured Streaming", "DStreams"])
def test_batches_follow_one_another(env, kafka, system):
    """They do not overlap, and each takes at least the CPU time of its messages, shared by all cores."""
    with reading(env, system, 100, {"cores": 2}) as (_, load, framework):
        reports = []
        for run in (1, 2):
            send(load, run, 100, 60, cost=0.02)
            reports += reported(framework, 60)
    assert sum(report.count for report in reports) == 120
    assert all(report.at - report.began >= report.cpu_requested_s / 2 > 0 for report in reports)
    assert all(before.at <= after.began for before, after in itertools.pairwise(reports))


def test_spark_refuses_a_source_that_it_cannot_read():
    """The reason says what it could read."""
    assert "kafka" in registry.make_framework("spark", {}).unsupported_reason(
        Cell("spark", "memory", 100, 0.0), "memory"
    )


def test_a_wrong_setting_is_told():
    """It names the setting."""
    with pytest.raises(UsageError, match="preset"):
        registry.make_framework("spark", {"spark": {"preset": "fast"}})


def test_a_receiver_has_a_slot_of_its_own(tmp_path):
    """A task slot more than cores, and blocks that fill the cores evenly."""
    conf = session_conf(SparkSettings(), cores=2, receivers=1, site=None, folder=tmp_path)
    assert conf["spark.master"] == "local[3]"
    assert conf["spark.streaming.blockInterval"] == f"{block_interval(1.0, 2) * 1000:.0f}ms"


@pytest.mark.parametrize(
    ("cores", "receivers", "interval"), [(4, 2, 0.5), (2, 4, 1.0), (100, 2, 0.05)], ids=["half", "longest", "shortest"]
)
def test_the_blocks_of_several_receivers_together_fill_the_cores(cores, receivers, interval):
    """A block is never longer than a batch."""
    assert block_interval(1.0, cores, receivers) == interval


def test_a_scenario_can_ask_for_what_spark_ships(tmp_path):
    """Nothing is tuned then."""
    shipped = SparkSettings(preset="shipped")
    assert "spark.streaming.blockInterval" not in session_conf(
        shipped, cores=2, receivers=1, site=None, folder=tmp_path
    )
    assert query_conf(shipped, "files", 100) == {}
    assert reader_options(shipped, "kafka", Endpoint("kafka", "h:1", "t")) == {}
    assert reader_options(shipped, "files", Endpoint("files", "/x")) == {}


def test_the_last_word_is_the_scenarios(tmp_path):
    """Its own Spark settings and options replace those of the plugin."""
    settings = SparkSettings(
        conf={"spark.driver.memory": "2g", "spark.sql.files.openCostInBytes": 7}, options={"maxFilesPerTrigger": 9}
    )
    assert session_conf(settings, cores=2, receivers=0, site=None, folder=tmp_path)["spark.driver.memory"] == "2g"
    assert "spark.sql.files.openCostInBytes" not in query_conf(settings, "files", 100)
    assert reader_options(settings, "files", Endpoint("files", "/x")) == {
        "cleanSource": "delete",
        "maxFilesPerTrigger": "9",
    }
    between = SparkSettings(clean="between trials")
    assert reader_options(between, "files", Endpoint("files", "/x")) == {}


def test_an_external_master_is_a_site_away(tmp_path):
    """The session runs there, and is reached from there."""
    site = SparkSite("spark://there:7077", driver_host="here")
    conf = session_conf(SparkSettings(batch_interval=Seconds(5)), cores=8, receivers=0, site=site, folder=tmp_path)
    assert (conf["spark.master"], conf["spark.driver.host"], conf["spark.cores.max"]) == (
        "spark://there:7077",
        "here",
        "8",
    )
    assert "spark.driver.bindAddress" not in conf


def test_what_a_client_needs_to_be_let_in_reaches_sparks_consumer(tmp_path):
    """And nothing else of the producer's."""
    (tmp_path / "password").write_text("secret\n")
    (tmp_path / "ca.crt").write_text("CERTIFICATE\n")
    client = {"user": "bench", "password_file": str(tmp_path / "password"), "ca_file": str(tmp_path / "ca.crt")}
    endpoint = Endpoint("kafka", "h:1", "t", client={"acks": 1, **client})
    options = reader_options(SparkSettings(preset="shipped"), "kafka", endpoint)
    assert options["kafka.security.protocol"] == "SASL_SSL"
    assert {key.split(".")[1] for key in options} == {"security", "sasl", "ssl"}


def test_the_secret_of_a_cluster_stands_in_no_argument_of_a_process(tmp_path, request):
    """Every account of a host can read the arguments; Spark takes the secret from a file that only we can read."""
    (tmp_path / "password").write_text("THE-SITE-PASSWORD # = \\\n")
    program = request.config.rootpath / "tests" / "integration" / "programs" / "spark_secret.py"
    subprocess.run([sys.executable, str(program), str(tmp_path)], timeout=DEADLINE, check=True)
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["secret"] == "THE-SITE-PASSWORD # = \\"
    assert any("java" in arguments[0] for arguments in found["arguments"])
    assert "THE-SITE-PASSWORD" not in str(found["arguments"])


def test_pulsars_reader_fetches_no_more_ahead_than_memory_takes():
    """Few messages where they are large; and it is let in as the endpoint says."""
    client = {"message_bytes": 10**7, "token_file": "/t", "ca_file": ""}
    options = reader_options(SparkSettings(), "pulsar", Endpoint("pulsar", "pulsar://h:1", "t", client=client))
    assert options == {"tokenFile": "/t", "caFile": "", "receiverQueueSize": "6"}


def written(size, count, run=1):
    """Messages as a source would bring them."""
    return message_codec.MessageWriter(run=run, producer=0, size=size, cost=0.0, entropy=ENTROPY).write(
        0, np.zeros(count), 0.0
    )


def of_arrow(*columns):
    """The one report of these columns of messages."""
    batches = (pa.RecordBatch.from_arrays([column], ["value"]) for column in columns)
    rows = [row for batch in on_arrow(MessageProcessor(100, ENTROPY))(batches) for row in batch.column(0).to_pylist()]
    (report,) = merge_rows(rows, began=6.0, at=7.0)
    return report


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_a_slice_of_a_column_is_read_in_place(kind):
    """The messages outside of it are not counted."""
    report = of_arrow(pa.array(written(100, 10), kind)[3:7], pa.array(written(100, 10), kind)[:3])
    assert (report.count, report.corrupted, report.began, report.at) == (7, 0, 6.0, 7.0)
    assert report.sums[0].total == sum(range(7))


def test_a_null_and_a_wrong_size_are_corrupted():
    """The rest of their batch is counted."""
    report = of_arrow(pa.array([None, b"", *written(100, 3), b"x" * 101], pa.binary()))
    assert (report.count, report.corrupted) == (3, 3)


def test_lines_are_worked_on_in_batches_of_bounded_size():
    """Each batch has its row; together they are exact."""
    most = messages_at_once(4_000_000)
    rows = list(on_lines(MessageProcessor(4_000_000, ENTROPY))(iter(written(4_000_000, 2 * most + 1))))
    assert len(rows) == 3
    assert merge_rows(rows, began=0.0, at=1.0)[0].count == 2 * most + 1


def test_each_run_has_its_own_report():
    """Late messages of an earlier trial stay told apart."""
    rows = list(on_lines(MessageProcessor(100, ENTROPY))([*written(100, 2, run=1), *written(100, 3, run=2)]))
    assert {report.run: report.count for report in merge_rows(rows, began=0.0, at=1.0)} == {1: 2, 2: 3}


def test_tasks_tell_all_latencies_and_what_is_impossible():
    """Together as one report, nothing of it left out: here messages that are sent a minute from now."""
    later = message_codec.MessageWriter(run=1, producer=0, size=100, cost=0.0, entropy=ENTROPY).write(
        0, np.zeros(4), time.monotonic() + 60
    )
    (report,) = merge_rows(
        [*on_lines(MessageProcessor(100, ENTROPY))(later), *on_lines(MessageProcessor(100, ENTROPY))(written(100, 3))],
        began=0.0,
        at=1.0,
    )
    assert {sum(count for _, count in part) for part in (report.from_due, report.from_sent, report.processing)} == {7}
    assert report.negative == 4


def test_latency_ends_when_the_result_of_the_batch_exists():
    """Here 2 s after the function: no message is earlier, and what the function itself took is unchanged."""
    batch = message_codec.MessageWriter(run=1, producer=0, size=100, cost=0.0, entropy=ENTROPY).write(
        0, np.full(50, time.monotonic()), time.monotonic()
    )
    rows = list(on_lines(MessageProcessor(100, ENTROPY))(batch))
    (report,) = merge_rows(rows, began=time.monotonic(), at=time.monotonic() + 2)
    counts = DeliveryCounts()
    counts.add(report)
    assert counts.from_due.quantile(0.01) >= 1.99
    assert min(counts.from_due.quantile(0.99), counts.from_sent.quantile(0.99)) >= 2
    assert counts.processing.quantile(1.0) < 2


def test_the_line_of_a_java_error_says_what_happened():
    """Not merely that something was called."""
    error = ValueError("An error occurred while calling o1.start.\n: java.io.IOException: disk full\n\tat x")
    assert first_line(error) == "java.io.IOException: disk full"
