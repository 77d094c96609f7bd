"""The reaper: a process beside the harness that ends the harness's children once the harness is gone.

It reads a pipe whose other end only the harness holds. End of file means that the harness has closed its Supervisor,
and then no record is left; or that the harness was killed, and then the records name the processes to end.
bench.system.supervisor starts one reaper for each Supervisor with `python -I -S`: standard library only.
"""

import os
import signal
import sys
import time
from pathlib import Path

from bench.system.orphans import reap, records


def main() -> None:
    """Wait for the end of the harness, then end the children it left.

    The last two command line arguments are the folder of the records and the name of the Supervisor.
    """
    registry, supervisor = Path(sys.argv[-2]), sys.argv[-1]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):  # no deadline: the reaper waits for as long as the harness lives
        pass
    if records(registry, supervisor):
        time.sleep(0.2)  # a child that was being started at that moment gets its marker only with its program
        reap(records(registry, supervisor), registry)
