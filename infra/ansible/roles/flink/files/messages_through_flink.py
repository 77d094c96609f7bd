"""Check of Flink: sends messages through a job of the Flink of a site file, and counts what its workers report."""

import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

from bench.config.site import Site
from bench.errors import HarnessError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.site_file import read_site_file
from bench.system.supervisor import Supervisor
from bench.workload.delivery_counts import DeliveryCounts
from bench.workload.load_spec import LoadSpec
from bench.workload.processing import MessageProcessor
from frameworks.flink.adapter import FlinkFramework, FlinkSettings
from frameworks.flink.site import FLINK_SITE

MESSAGES, SECONDS, ENTROPY, TIMEOUT_S = 1000, 1.0, 0.5, 60.0
CELL = Cell("flink", "tcp", 1000, 0.0)


def main() -> None:
    """Print how long the messages took; exit with 1 if the job did not process each of them once."""
    site = read_site_file(Path(sys.argv[1]))
    flink = FLINK_SITE.read(site)
    if flink is None:
        sys.exit("the site has no Flink")
    started = time.monotonic()
    try:
        counts = _send_messages(site, Path(sys.argv[2]))
    except HarnessError as problem:
        sys.exit(str(problem))
    if counts.count != MESSAGES or counts.corrupted or counts.reconcile({0: MESSAGES}) != (0, 0):
        sys.exit(f"the job in {flink.rest} processed {counts.count} of {MESSAGES} messages, {counts.corrupted} damaged")
    print(f"{MESSAGES} messages went through a job in {flink.rest} in {time.monotonic() - started:.1f} s")


def _send_messages(site: Site, cache: Path) -> DeliveryCounts:
    """Return the counts of the messages that a job reads from a socket of this machine."""
    source = registry.make_source("tcp", {})
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        supervisor = Supervisor(Path(folder) / "running", Path(folder) / "logs")
        env = opened.enter_context(RunEnvironment(site, supervisor, Path(folder) / "data", cache, cores=1))
        endpoint = source.open(CELL, env)
        load = opened.enter_context(closing(registry.load_generator_plugin("inline").open(endpoint, env, 1)))
        work = MessageProcessor(CELL.message_bytes, ENTROPY)
        job = opened.enter_context(closing(FlinkFramework(FlinkSettings()).open(CELL, endpoint, work, env)))
        load.start(LoadSpec(1, MESSAGES / SECONDS, time.monotonic(), SECONDS, CELL.message_bytes, 0.0, ENTROPY))
        counts, deadline = DeliveryCounts(), time.monotonic() + TIMEOUT_S
        while counts.count + counts.corrupted < MESSAGES and time.monotonic() < deadline:
            for report in job.poll():
                counts.add(report)
            time.sleep(0.1)
    return counts


if __name__ == "__main__":
    main()
