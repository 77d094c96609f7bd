"""A process beside the harness that ends its children when it is gone, however it went; standard library only.

It reads a pipe whose other end only the harness holds. End of file means that the harness has closed its Supervisor, and then
no record is left; or that it was killed, and then the records say what to end. bench.system.supervisor starts one for each Supervisor.
"""

import os
import signal
import sys
import time
from pathlib import Path

from bench.system.orphans import end, records


def main() -> None:
    """Wait for the end of the harness, then end what it left; the arguments are the registry and the Supervisor's name."""
    registry, supervisor = Path(sys.argv[-2]), sys.argv[-1]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):  # no deadline: it waits for as long as the harness lives
        pass
    if records(registry, supervisor):
        time.sleep(0.2)  # a child that was being started at that very moment gets its marker with its program
        end(records(registry, supervisor), registry)
