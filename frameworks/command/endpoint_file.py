"""A JSON file that tells a program under test what to read, and variables of its environment with the same values."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.errors import UsageError
from bench.model.cell import Cell
from bench.plugins.protocols import Endpoint

PREFIX = "STREAM_BENCH_"
"""Of the variables."""


class ReportTarget(Struct, frozen=True):
    """The place to which a program sends its reports: a TCP port, or a topic. What does not apply is empty."""

    address: str = ""
    """host:port"""
    token: str = ""
    topic: str = ""


class EndpointRecord(Struct, frozen=True):
    """The content of the JSON file."""

    source: str
    address: str
    """host:port of the source, several separated by commas; or a folder"""
    topic: str
    partitions: int
    client: dict[str, str | int | float | bool]
    """settings of the source's clients"""
    message_bytes: int
    cpu_seconds: float
    """that the program spends on each message"""
    cores: int
    """that it may use"""
    report_address: str
    report_token: str
    report_topic: str


def describe(cell: Cell, endpoint: Endpoint, target: ReportTarget, cores: int) -> EndpointRecord:
    """Return what a program needs to know of a cell."""
    return EndpointRecord(
        source=endpoint.source,
        address=endpoint.address,
        topic=endpoint.name,
        partitions=endpoint.parts,
        client=endpoint.client,
        message_bytes=cell.message_bytes,
        cpu_seconds=cell.cpu_seconds,
        cores=cores,
        report_address=target.address,
        report_token=target.token,
        report_topic=target.topic,
    )


def write_endpoint_file(path: Path, record: EndpointRecord) -> None:
    """Write the JSON file in one step; only its owner can read it: the token lets in who reports.

    Raises:
        UsageError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        part.unlink(missing_ok=True)
        part.touch(mode=0o600, exist_ok=False)
        part.write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
        part.replace(path)
    except OSError as problem:
        raise UsageError(f"settings.command.file: {path} cannot be written ({problem.strerror})") from problem


def variables(record: EndpointRecord, path: Path) -> Mapping[str, str]:
    """Return the variables of the program's environment: the JSON file, and what in it is one value."""
    values = {"endpoint": path, **msgspec.structs.asdict(record)}
    return {f"{PREFIX}{name.upper()}": str(value) for name, value in values.items() if name != "client"}
