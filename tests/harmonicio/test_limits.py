"""A process that reaches a limit ends with a code of its own, and one line in the log."""

import contextlib
import resource

import psutil
import pytest

from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.engine.tasks import EXIT_CODE

pytestmark = pytest.mark.real


def test_a_master_that_may_not_start_a_thread_ends_with_its_own_code(cluster):
    """The campaign found a traceback and 1: asyncio's own clean-up starts a thread, too."""
    cluster.start_master()
    cluster.submit(num=1)  # there is no worker: the message waits in the queue
    master = cluster.processes["master"]
    most = psutil.Process(master.pid).memory_info().vms + 2**22  # the stack of a thread is larger
    resource.prlimit(master.pid, resource.RLIMIT_AS, (most, most))
    with contextlib.suppress(HarmonicError), Connector(c_name="s", port=cluster.data_port, timeout=1) as connector:
        connector.send_many([b"x"])
        connector.flush()
    assert master.wait(60) == EXIT_CODE
    assert "can't start new thread" in cluster.log()
    assert "Traceback" not in cluster.log()
