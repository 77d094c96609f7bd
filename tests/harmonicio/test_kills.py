"""After a kill -9 of a PE, a worker or the master amid a million messages no acknowledged message is lost."""

import os
import signal

import numpy as np
import pytest
from processes import numbered, wait_until

from frameworks.harmonicio.engine.connector import Connector

MILLION, CHUNK = 1_000_000, 20_000
pytestmark = pytest.mark.real


def send_all(cluster, at_middle, **options):
    """Send a million messages and do something in the middle; return the connector's counters at the end."""
    with Connector(c_name="s", port=cluster.data_port, timeout=60, **options) as connector:
        for first in range(0, MILLION, CHUNK):
            connector.send_many(numbered(first, CHUNK))
            if first == MILLION // 2:
                at_middle()
        connector.flush()
        return connector.feeder.acked, connector.feeder.failed, connector.feeder.redelivered


def assert_none_lost(cluster, redelivered):
    """Assert that every number was processed, and twice only if it was sent again."""
    wait_until(
        lambda: len(numbers := cluster.processed()) >= MILLION and len(np.unique(numbers)) == MILLION,
        f"all but {len(np.unique(cluster.processed()))} messages",
    )
    found = cluster.processed()
    assert found.min() == 0
    assert found.max() == MILLION - 1
    assert len(found) - MILLION <= redelivered


def test_a_killed_pe_loses_nothing(running_cluster):
    """Its unacknowledged messages go to another PE, and it is started again."""
    running_cluster.submit(num=2)
    running_cluster.wait_pes(2)
    acked, failed, redelivered = send_all(
        running_cluster, lambda: os.kill(running_cluster.pe_pids()[0], signal.SIGKILL)
    )
    assert (acked, failed) == (MILLION, 0)
    assert_none_lost(running_cluster, redelivered)
    running_cluster.wait_pes(2)


def test_a_killed_worker_loses_nothing(running_cluster):
    """Its PEs end, messages wait in the queue, and are delivered once there is a worker again."""
    running_cluster.submit(num=1)
    running_cluster.wait_pes(1)

    def kill_and_start_again():
        running_cluster.kill("worker")
        running_cluster.start_worker()

    acked, failed, redelivered = send_all(running_cluster, kill_and_start_again, overflow="absent")
    assert (acked, failed) == (MILLION, 0)
    assert_none_lost(running_cluster, redelivered + CHUNK)


def test_a_killed_master_loses_nothing_of_its_queue(cluster):
    """Without PEs all messages are in the queue, which a new master restores."""
    cluster.start_master()

    def kill_and_start_again():
        cluster.kill("master")
        cluster.start_master()

    acked, failed, _ = send_all(cluster, kill_and_start_again)
    assert (acked, failed) == (MILLION, 0)
    cluster.submit()
    cluster.start_worker()
    assert_none_lost(cluster, 2 * 65536)  # journaled, but their acknowledgement was lost


def test_the_data_plane_goes_on_while_there_is_no_master(running_cluster):
    """Messages reach the leased PEs; nothing is queued and nothing sent twice."""
    running_cluster.submit()
    running_cluster.wait_pes(1)
    acked, failed, redelivered = send_all(running_cluster, lambda: running_cluster.kill("master"), overflow="never")
    assert (acked, failed, redelivered) == (MILLION, 0, 0)
    assert np.array_equal(np.sort(running_cluster.processed()), np.arange(MILLION, dtype="<u8"))
    running_cluster.start_master()
    running_cluster.wait_pes(1)
