"""A cell's job: its options stay in the run folder, and its watch outlives an answer that is none of Flink's."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from bench.config.site import Site
from bench.model.cell import Cell
from bench.plugins.environment import RunEnvironment
from bench.system.child import Child
from bench.system.ipc import Failure
from bench.system.supervisor import Supervisor
from bench.workload.processing import MessageProcessor
from frameworks.flink.adapter import JobWatch, _submit
from frameworks.flink.cluster import SiteFlinkCluster
from frameworks.flink.commands import SubmitJob, Submitted, Work
from frameworks.flink.conf import FlinkSettings, job_conf
from frameworks.flink.rest import FlinkRest
from frameworks.report_connection import ReportAddress

DEADLINE_S = 10.0
CLIENT = """
from bench.system.child_main import serve_command
from frameworks.flink.commands import SubmitJob, Submitted
serve_command(SubmitJob, lambda channel, command: channel.send(Submitted("job-1")))
"""


class Cluster(SiteFlinkCluster):
    """A cluster that accepts every job."""

    def __init__(self) -> None:
        pass

    def start_client(self, env: RunEnvironment) -> Child:
        command, received = [sys.executable, "-c", CLIENT], Submitted | Failure
        return env.supervisor.start(command, name="flink-client", role="framework", received=received)


def test_the_run_folder_has_the_options_of_each_job(tmp_path: Path) -> None:
    """Beside the client's log, with its checkpoints, and without the options of the source, which hold a password."""
    cells = [Cell("flink", "kafka", size, 0.0) for size in (100, 1000)]
    confs = [job_conf(FlinkSettings(), cell, parallelism=2, python="/python") for cell in cells]
    source = {"connector": "kafka", "properties.sasl.jaas.config": "secret"}
    work = Work(MessageProcessor(100, 0.5), ReportAddress("127.0.0.1", 9400, "other"))
    logs = tmp_path / "logs"
    with RunEnvironment(Site(), Supervisor(tmp_path / "running", logs), tmp_path / "data", tmp_path, cores=2) as env:
        for conf in confs:
            job = SubmitJob("127.0.0.1:8081", "table", (), "", conf, source, work)
            assert _submit(job, Cluster(), env) == "job-1"
    written = [(logs / name).read_text() for name in ("flink-client.conf", "flink-client-2.conf")]
    assert [yaml.safe_load(text) for text in written] == confs
    assert yaml.safe_load(written[0])["execution.checkpointing.interval"] == "10000 ms"


def test_a_watch_outlives_an_answer_that_is_no_http(serve: Callable[..., str]) -> None:
    """It asks again, and then says why the job ended."""
    job = b'HTTP/1.1 200 OK\r\n\r\n{"state": "FAILED", "vertices": []}'
    why = b'HTTP/1.1 200 OK\r\n\r\n{"exceptionHistory": {"entries": [{"stacktrace": "a.B: no broker\\n\\tat c"}]}}'
    watch = JobWatch(FlinkRest(serve(b"garbage\r\n", job, why)), "job-1", lambda view: None)
    deadline = time.monotonic() + DEADLINE_S
    while watch.failure is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert watch.failure == "a.B: no broker"
