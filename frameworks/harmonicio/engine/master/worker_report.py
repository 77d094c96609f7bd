"""The report that a worker of any era sends to the master."""

import time

from frameworks.harmonicio.engine.errors import RefusedError
from frameworks.harmonicio.engine.http import can_be_host
from frameworks.harmonicio.engine.master.registry import RegisteredWorker
from frameworks.harmonicio.engine.wire.literal import read_literal


def read_report(body: bytes, remote: str) -> RegisteredWorker:
    """Return the worker of a report.

    Args:
        body: JSON or a Python literal.
        remote: address of the sender, for a report without one.

    Raises:
        ProtocolError: the body cannot be parsed.
        RefusedError: it is not a report.
    """
    report = read_literal(body)
    if not isinstance(report, dict) or not isinstance(report.get("node_addr"), str):
        raise RefusedError("a report is a mapping with node_addr")
    port = report.get("node_port", 0)
    if not isinstance(port, int) or not 0 <= port < 65536 or not isinstance(report.get("docker", []), list):
        raise RefusedError("node_port is a port, docker a list")
    host = report["node_addr"] or remote
    if not can_be_host(host):
        raise RefusedError(f"{host[:255]!r} is neither an address nor the name of a host")
    report["last_upd"] = int(time.time())
    return RegisteredWorker(host, port, str(report.get("node_name", ""))[:255], time.monotonic(), report)
