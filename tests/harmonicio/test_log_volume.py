"""The logs of HarmonicIO stay small, whoever connects to its ports: a line of each connection, few of one kind."""

import errno
import json
import logging
import os

import pytest
from test_safety import thrown

from frameworks.harmonicio.engine.logs import JsonFormatter, LineLimits

CONNECTIONS = 10_000
MAX_LOG_BYTES = 200_000
KIND = ("logger", "a message with %s")


def test_lines_of_a_kind_are_counted_beyond_the_limit():
    """Once the period is over, the number that was left out is known, and lines are logged again."""
    limits = LineLimits(2, 10)
    assert [limits.admit(KIND, 100 + second) for second in range(5)] == [True, True, False, False, False]
    assert limits.admit(("logger", "another"), 105)
    assert limits.end_period(109) == []
    assert limits.end_period(110) == [(KIND, 3)]
    assert limits.end_period(200) == []
    assert limits.admit(KIND, 200)


def test_many_kinds_share_a_limit():
    """A message that is different each time fills neither the log nor the memory."""
    limits = LineLimits(2, 10)
    assert sum(limits.admit(("logger", str(number)), 0) for number in range(5000)) == 1000 + 2


@pytest.mark.parametrize(
    ("error", "is_traced"),
    [
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), False),
        (OSError(errno.EBADF, "bad"), True),
        (ValueError(), True),
    ],
    ids=["no descriptors left", "another error of the system", "an error of ours"],
)
def test_a_machine_that_has_no_more_of_something_is_no_traceback(error, is_traced):
    """Each connection that asyncio cannot accept is logged; the line says what is missing."""
    record = logging.LogRecord("asyncio", logging.ERROR, "", 0, "accept failed", None, (type(error), error, None))
    line = json.loads(JsonFormatter("master").format(record))
    assert ("exception" in line) == is_traced
    assert line["message"] == ("accept failed" if is_traced else f"accept failed: {error}")


@pytest.mark.real
@pytest.mark.parametrize("garbage", [b"\x00\xff" * 50, b"GET /\xff\x00 HTTP/9\r\n\r\n", b"HIO4" + b"x" * 60])
def test_ten_thousand_connections_with_garbage_write_a_small_log(running_cluster, garbage):
    """No traceback; and the cluster still answers."""
    ports = (running_cluster.data_port, running_cluster.port, running_cluster.worker_port)
    for number in range(CONNECTIONS):
        thrown(ports[number % 3], garbage, answer=number % 100 == 0)
    assert running_cluster.operator.status()["workers"]
    log = running_cluster.log()
    assert "Traceback" not in log
    assert len(log) < MAX_LOG_BYTES
    for role in ("worker", "master"):
        running_cluster.stop(role)
    assert "more lines were left out" in running_cluster.log()
