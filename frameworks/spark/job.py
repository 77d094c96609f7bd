"""The Spark driver: a child process that holds one Spark session and reads with it what the harness tells it to."""

import argparse
import shutil
import subprocess
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from socket import SHUT_RDWR
from tempfile import mkdtemp
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bench.system.ipc import Channel, Failure, Ready
from bench.workload.delivery_counts import ProcessingReport
from frameworks.spark.commands import Command, Read, StartSession, Stop, first_line
from frameworks.spark.receiver import Receiver
from frameworks.spark.structured import Query

_POLL_INTERVAL_S = 0.05
"""Seconds between two looks at what was done and at whether everything is still well."""
_JVM_END_S = 3.0
"""Seconds that a failure waits for the end of the JVM, which explains it: a killed one closes its sockets before its
parent is told."""
_STOP_TIMEOUT_S = 4.0
"""Seconds that Spark has to stop when the harness ends or is gone."""


class Driver:
    """Spark, and what it reads at present. Only this thread uses the channel.

    Spark's threads put their reports into a queue.
    """

    def __init__(self, channel: "Channel[Command]") -> None:
        self._channel = channel
        self._done: SimpleQueue[list[ProcessingReport]] = SimpleQueue()
        self._spark: SparkSession | None = None
        self._cores = 1
        self._reading: Query | Receiver | None = None

    def run(self) -> None:
        """Execute commands until the harness or Spark is gone; then end Spark."""
        try:
            reason = None
            while reason is None:
                for command in self._channel.receive(_POLL_INTERVAL_S):
                    self._execute(command)
                self._tell_what_is_done()
                reason = self._failure_reason()
            self._channel.send(Failure(self._jvm_exit(_JVM_END_S) or reason))
        except EOFError:
            pass
        except (PySparkException, Py4JError, OSError) as error:
            traceback.print_exc()
            self._channel.send(Failure(self._jvm_exit(_JVM_END_S) or first_line(error)))
        finally:
            self._end()

    def _execute(self, command: Command) -> None:
        match command:
            case StartSession():
                self._spark, self._cores = _start_session(command.conf), command.cores
            case Read():
                self._reading = self._reader(command)
            case Stop():
                self._stop_reading()
        self._channel.send(Ready())

    def _reader(self, read: Read) -> Query | Receiver:
        assert self._spark is not None, "StartSession comes first"
        if read.reader == "receiver":
            return Receiver(self._spark.sparkContext, read, self._done.put, self._cores)
        return Query(self._spark, read, self._done.put)

    def _stop_reading(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.stop()
            self._close_callbacks()
        while not self._done.empty():
            self._done.get()

    def _close_callbacks(self) -> None:
        """Close the connections over which the JVM has called Python; it opens others for what is read next.

        A thread of the JVM that calls back gets a connection and a Python thread of its own (py4j, ClientServer), which
        outlive it: each query has one.
        """
        assert self._spark is not None, "something was read"
        gateway: Any = self._spark.sparkContext._gateway  # noqa: SLF001  PySpark has no name for it
        callbacks, jvm = gateway._callback_server, gateway.java_gateway_server  # noqa: SLF001
        if callbacks is None:
            return
        client = jvm.getCallbackClient()
        jvm.resetCallbackClient(client.getAddress(), client.getPort())
        for connection in list(callbacks.connections):
            if connection.socket is not None:
                with suppress(OSError):  # the JVM has closed it
                    connection.socket.shutdown(SHUT_RDWR)

    def _tell_what_is_done(self) -> None:
        while not self._done.empty():
            for report in self._done.get():
                self._channel.send(report)

    def _failure_reason(self) -> str | None:
        return self._jvm_exit() or (self._reading.failure_reason() if self._reading is not None else None)

    def _jvm_exit(self, timeout_s: float = 0.0) -> str | None:
        """Return how Spark's JVM ended, within `timeout_s` at most; None if it has not."""
        if self._spark is None:
            return None
        gateway: Any = self._spark.sparkContext._gateway  # noqa: SLF001  nothing else tells a dead JVM at once
        try:
            return f"Spark's JVM ended (exit code {gateway.proc.wait(timeout_s)})"
        except subprocess.TimeoutExpired:
            return None

    def _end(self) -> None:
        """Stop Spark if it still can be; what is left ends with this process, whose end closes the JVM's input."""
        if self._spark is not None and self._jvm_exit() is None:
            stopping = threading.Thread(target=self._spark.stop, daemon=True)
            stopping.start()
            stopping.join(_STOP_TIMEOUT_S)


def main() -> None:
    """Run the driver at the end of the channel that the harness gave it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--channel", type=int, required=True)
    Driver(Channel.inherited(parser.parse_args().channel, cast("type[Command]", Command))).run()


def _start_session(conf: dict[str, str]) -> SparkSession:
    settings = SparkConf().setAll(list(conf.items()))
    spark = SparkSession.builder.config(conf=settings).getOrCreate()
    if not conf["spark.master"].startswith("local"):
        spark.sparkContext.addPyFile(_packed())
    return spark


def _packed() -> str:
    """Return our own modules that executors on other hosts import, as a zip."""
    root, folder = Path(__file__).parents[2], Path(mkdtemp(dir="."))
    for name in ("bench", "frameworks"):
        shutil.copytree(
            root / name, folder / "code" / name, ignore=shutil.ignore_patterns("__pycache__", "harmonicio", "*.log")
        )
    return shutil.make_archive(str(folder / "stream_bench"), "zip", folder / "code")


if __name__ == "__main__":
    main()
