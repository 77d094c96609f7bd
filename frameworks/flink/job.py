"""The client that submits the job of a cell to a Flink cluster and ends. Runs in Flink's own Python."""

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyflink.common import Configuration, Duration, Types, WatermarkStrategy
from pyflink.common.serialization import SimpleStringSchema
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from pyflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from pyflink.java_gateway import get_gateway
from pyflink.table import DataTypes, Schema, StreamTableEnvironment, Table, TableDescriptor
from pyflink.table.expressions import call, col
from pyflink.table.udf import udf
from pyflink.util.exceptions import JavaException

from bench.config.address import Address
from bench.errors import PluginError
from bench.system.child_main import serve_command
from bench.system.ipc import Channel
from frameworks.flink.commands import FILES, KAFKA, SOCKET, SubmitJob, Submitted
from frameworks.flink.rest import deepest_cause
from frameworks.flink.work import MessageWork, PandasWork

_CLIENT = "properties."
"""Before each option of Kafka's client, in the connector's options."""


def main() -> None:
    """Serve the channel whose file number ends the command line."""
    serve_command(SubmitJob, _submit)


def _submit(channel: Channel[SubmitJob], command: SubmitJob) -> None:
    submit = {"table": _submit_table, "datastream": _submit_datastream}[command.mode]
    try:
        job = submit(command, _remote_environment(command))
    except (Py4JJavaError, JavaException) as problem:
        raise PluginError("flink", "open", _reason(problem)) from problem
    channel.send(Submitted(job))


def _remote_environment(command: SubmitJob) -> StreamExecutionEnvironment:
    """Return the environment of a job for the cluster; `get_execution_environment` would start one in this client."""
    gateway, conf = get_gateway(), Configuration()
    host, _, port = command.rest.rpartition(":")  # Flink makes a URL of it: an IPv6 address keeps its brackets
    remote = {"execution.target": "remote", "execution.attached": "true", "rest.address": host, "rest.port": port}
    for key, value in {**command.conf, **remote}.items():
        conf.set_string(key, value)
    environments = gateway.jvm.org.apache.flink.streaming.api.environment
    made = environments.StreamExecutionEnvironment(conf._j_configuration)  # noqa: SLF001  there is no other way
    environment = StreamExecutionEnvironment(made)
    environment.add_jars(*(Path(jar).as_uri() for jar in command.jars))  # to this client, too
    if command.modules:
        environment.add_python_file(command.modules)
    return environment


def _submit_table(command: SubmitJob, environment: StreamExecutionEnvironment) -> str:
    """Submit a job of the Table API: the raw values of the source, the pandas UDF, a sink that drops its results."""
    tables = StreamTableEnvironment.create(environment)
    results = TableDescriptor.for_connector("blackhole").schema(_columns("done", DataTypes.TINYINT()))
    tables.create_temporary_table("results", results.build())
    work = udf(PandasWork(command.work), result_type=DataTypes.TINYINT(), func_type="pandas")
    tables.create_temporary_function("work", work)
    messages = _messages(command, environment, tables)
    submitted = messages.select(call("work", col("body"))).execute_insert("results")
    return str(submitted.get_job_client().get_job_id())


def _messages(command: SubmitJob, environment: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> Table:
    """Return a table with the messages of the source in its column `body`."""
    connector = command.source["connector"]
    if connector == SOCKET:
        lines = tables.from_data_stream(_socket(command, environment)).alias("line")
        return lines.select(col("line").cast(DataTypes.BYTES()).alias("body"))
    messages = TableDescriptor.for_connector(connector).schema(_columns("body", DataTypes.BYTES())).format("raw")
    for key, value in command.source.items():
        if key != "connector":
            messages = messages.option(key, value)
    tables.create_temporary_table("messages", messages.build())
    return tables.from_path("messages")


def _columns(name: str, kind: Any) -> Schema:
    return Schema.new_builder().column(name, kind).build()


def _submit_datastream(command: SubmitJob, environment: StreamExecutionEnvironment) -> str:
    """Submit a job of the DataStream API: values as texts of Latin-1, which holds any byte, and a flat map."""
    stream = {KAFKA: _kafka, FILES: _files, SOCKET: _socket}[command.source["connector"]](command, environment)
    stream.flat_map(MessageWork(command.work), output_type=Types.INT()).name("work")
    return str(environment.execute_async().get_job_id())


def _kafka(command: SubmitJob, environment: StreamExecutionEnvironment) -> DataStream:
    options = command.source
    source = KafkaSource.builder().set_topics(options["topic"])
    for key, value in options.items():
        if key.startswith(_CLIENT):
            source = source.set_property(key.removeprefix(_CLIENT), value)
    source = source.set_starting_offsets(KafkaOffsetsInitializer.earliest())
    source = source.set_value_only_deserializer(SimpleStringSchema("ISO-8859-1")).build()
    return environment.from_source(source, WatermarkStrategy.no_watermarks(), "messages")


def _files(command: SubmitJob, environment: StreamExecutionEnvironment) -> DataStream:
    parse = get_gateway().jvm.org.apache.flink.util.TimeUtils.parseDuration
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format("ISO-8859-1"), command.source["path"])
    source = source.monitor_continuously(Duration(parse(command.source["source.monitor-interval"]))).build()
    return environment.from_source(source, WatermarkStrategy.no_watermarks(), "messages")


def _socket(command: SubmitJob, environment: StreamExecutionEnvironment) -> DataStream:
    """Return the lines of all connections, dealt out to all subtasks by an operator that does nothing else.

    One subtask reads a connection. What follows it in a table would run in that one, too.
    """
    java = environment._j_stream_execution_environment  # noqa: SLF001  PyFlink has no sockets
    addresses = map(Address.parse, command.source["addresses"].split(","))
    first, *others = (DataStream(java.socketTextStream(host, port)) for host, port in addresses)
    lines = first.union(*others).assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks())
    return lines.set_parallelism(environment.get_parallelism())


def _reason(problem: Py4JJavaError | JavaException) -> str:
    """Return the deepest cause of a Java exception, in a line."""
    if isinstance(problem, JavaException):  # PyFlink's own, of some of the Table API: it keeps the text only
        return deepest_cause(problem.stack_trace)
    cause: Any = problem.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).strip().partition("\n")[0]


if __name__ == "__main__":
    main()
