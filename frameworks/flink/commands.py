"""Messages between the harness and the client that submits a job to Flink."""

from typing import Literal

from msgspec import Struct

from bench.workload.processing import MessageProcessor
from frameworks.report_connection import ReportAddress

Mode = Literal["table", "datastream"]
KAFKA, FILES, SOCKET = "kafka", "filesystem", "socket"
"""What reads a source: two connectors, by Flink's names, and the socket of the DataStream API."""


class Work(Struct, frozen=True):
    """The task of Flink's Python workers: the common work, with reports to the harness."""

    work: MessageProcessor
    reports: ReportAddress
    at_once: bool = False
    """whether a report is sent before Flink gets the results, so that no checkpoint has messages that are not reported
    """
    gathered: int = 1
    """messages that a function which gets them one by one processes at once"""


class SubmitJob(Struct, frozen=True, tag="submit_job"):
    """A command, sent once: submit the job of a cell."""

    rest: str
    """host:port of the cluster"""
    mode: Mode
    jars: tuple[str, ...]
    modules: str
    """a zip file with our own modules; empty where the workers find them without"""
    conf: dict[str, str]
    """Flink options of the job"""
    source: dict[str, str]
    """options of the source's connector, which `connector` names; they may hold a password"""
    work: Work


class Submitted(Struct, frozen=True, tag="submitted"):
    """The reply: Flink has accepted the job."""

    job: str
    """its id"""
