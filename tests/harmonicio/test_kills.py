"""After a kill -9 of PE, worker or master in the middle of a million messages none that was acknowledged is lost."""

import os
import signal

import numpy as np
import pytest
from processes import numbered, until

from frameworks.harmonicio.engine.connector import Connector

MILLION, CHUNK = 1_000_000, 20_000
pytestmark = pytest.mark.real


def send_all(stand, at_middle, **options):
    """Send a million messages, do something in the middle; the connector's counts once all are acknowledged."""
    with Connector(c_name="s", port=stand.data_port, timeout=60, **options) as connector:
        for first in range(0, MILLION, CHUNK):
            connector.send_many(numbered(first, CHUNK))
            if first == MILLION // 2:
                at_middle()
        connector.flush()
        return connector.feeder.acked, connector.feeder.failed, connector.feeder.redelivered


def assert_none_lost(stand, redelivered):
    """Every number came; one came twice only if it was sent again."""
    until(lambda: len(np.unique(stand.processed())) == MILLION, f"all but {len(np.unique(stand.processed()))} messages")
    found = stand.processed()
    assert found.min() == 0
    assert found.max() == MILLION - 1
    assert len(found) - MILLION <= redelivered


def test_a_killed_pe_loses_nothing(standing):
    """What it had not acknowledged goes to another; it is started again."""
    standing.submit(num=2)
    standing.wait_pes(2)
    acked, failed, redelivered = send_all(standing, lambda: os.kill(standing.pe_pids()[0], signal.SIGKILL))
    assert (acked, failed) == (MILLION, 0)
    assert_none_lost(standing, redelivered)
    standing.wait_pes(2)


def test_a_killed_worker_loses_nothing(standing):
    """Its PEs end, messages wait in the queue, and go on when there is a worker again."""
    standing.submit(num=1)
    standing.wait_pes(1)

    def kill_and_start_again():
        standing.kill("worker")
        standing.start_worker()

    acked, failed, redelivered = send_all(standing, kill_and_start_again, overflow="absent")
    assert (acked, failed) == (MILLION, 0)
    assert_none_lost(standing, redelivered + CHUNK)


def test_a_killed_master_loses_nothing_of_its_queue(stand):
    """Nobody can take the messages: all are in the queue, of which a new master finds everything."""
    stand.start_master()

    def kill_and_start_again():
        stand.kill("master")
        stand.start_master()

    acked, failed, _ = send_all(stand, kill_and_start_again)
    assert (acked, failed) == (MILLION, 0)
    stand.submit()
    stand.start_worker()
    assert_none_lost(stand, 2 * 65536)  # what the journal had and the acknowledgement of which was not heard


def test_the_data_plane_goes_on_while_there_is_no_master(standing):
    """Messages reach the leased PEs; nothing is queued and nothing sent twice."""
    standing.submit()
    standing.wait_pes(1)
    acked, failed, redelivered = send_all(standing, lambda: standing.kill("master"), overflow="never")
    assert (acked, failed, redelivered) == (MILLION, 0, 0)
    assert np.array_equal(np.sort(standing.processed()), np.arange(MILLION, dtype="<u8"))
    standing.start_master()
    standing.wait_pes(1)
